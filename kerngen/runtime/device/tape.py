"""The tape: a capture's recording on a device, and its replay.

A tape takes the recorder's place while the block runs.  Calls are checked, planned, leased
and bound as ever, and recorded on the tape, as parts:

    block:   relu, sum, copy, sgd(lr=rate)
    parts:   Dispatches(relu, sum) | Copy | ReplayedCall(sgd)

A replay encodes the parts into the recording of the context, at the price of wgpu's calls.

A capture owns what another call between two replays would otherwise change: uniforms in
chunks that no other call packs into, and the memory of all that it leased.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, final

from kerngen.runtime.backend import AnyTensor
from kerngen.runtime.calls.call_plan import BoundCall, PlannedDispatch
from kerngen.runtime.calls.capture import Capture, changed, within_capture
from kerngen.runtime.calls.launch import Launcher
from kerngen.runtime.calls.scalars import prepare
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.arena import UniformArena
from kerngen.runtime.device.bound import BoundDispatch
from kerngen.runtime.device.gpu import Buffer, Device
from kerngen.runtime.device.memory import Memory
from kerngen.runtime.device.native import Command, Commands, commands_for
from kerngen.runtime.device.recorder import Recorder
from kerngen.runtime.device.shaders import BindGroups
from kerngen.runtime.device.storage import Allocation, Lease

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel
    from kerngen.runtime.context import Context

_numbers: Final = count(2)
"""Serial numbers of tapes, which are made negative: -2, -3, ...

Recordings of a recorder count up from 0, and -1 is a block's that no recording uses.
"""


@final
@dataclass(frozen=True, slots=True)
class Dispatches:
    """A part of a tape: consecutive dispatches, prepared to be encoded.

    `origins` has the kernel and the planned dispatch of each.
    """

    commands: Commands
    origins: tuple[tuple[str, PlannedDispatch], ...]


@final
@dataclass(frozen=True, slots=True)
class Copy:
    """A part of a tape: a copy from buffer to buffer on the device."""

    source: Allocation[Buffer]
    start: int
    target: Allocation[Buffer]
    offset: int
    nbytes: int


@final
@dataclass(frozen=True, slots=True)
class Clear:
    """A part of a tape: `nbytes` of a buffer are filled with zeros."""

    target: Allocation[Buffer]
    offset: int
    nbytes: int


@final
@dataclass(slots=True)
class ReplayedCall:
    """A part of a tape: a call with scalars that replays may change.

    It is packed and bound at each replay.  `names` has the position of each such scalar, with
    its name.  The uniforms need new memory at each replay, as an earlier replay may not have
    run yet.
    """

    kernel: Kernel
    call: BoundCall
    scalars: tuple[Any, ...]
    names: Mapping[int, str]

    def changed(self, changes: Mapping[str, float]) -> tuple[Any, ...]:
        """Return the call's scalars after `changes`, checked as in a call."""
        dims = self.call.plan.signature.values
        return changed(self.kernel, dims, self.scalars, self.names, changes)


Part: TypeAlias = Dispatches | Copy | Clear | ReplayedCall | BoundDispatch


@final
class Tape:
    """The recording of a capture's block on a device; callers must hold the context's lock.

    While the block runs, a tape is a `Recording`; afterwards `replay` encodes its parts.
    """

    def __init__(
        self,
        device: Device,
        *,
        memory: Memory,
        launcher: Launcher,
        recorder: Recorder,
        counters: Counters,
        opened: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Start with nothing recorded.

        `launcher` and `recorder` are those of the context, by which replays go.  `opened`
        locks the context, or raises if it has ended.
        """
        self.serial = -next(_numbers)
        self.arena = UniformArena(memory.uniform_chunk)
        self.bind_groups = BindGroups(device, counters)
        self.leases: list[Lease[Buffer]] = []
        self.changing: tuple[tuple[Any, ...], Mapping[int, str]] | None = None
        """The scalars of the call that is being recorded, if replays change some."""
        self._device = device
        self._launcher = launcher
        self._recorder = recorder
        self._counters = counters
        self._opened = opened
        self._ready = commands_for(device)
        # The dispatches since the last part, which `_end_row` turns into one.
        self._commands: list[Command] = []
        self._origins: list[tuple[str, PlannedDispatch]] = []
        self._parts: list[Part] = []
        self._kernels: dict[Kernel, None] = {}
        self._names: dict[str, None] = {}
        self._used: dict[Allocation[Buffer], None] = {}
        self._writes: dict[Allocation[Buffer], int] = {}
        self._calls = 0

    @property
    def kernels(self) -> Collection[Kernel]:
        """The kernels that the tape runs."""
        return self._kernels

    # ---- recording

    def record(
        self,
        kernel: Kernel,
        call: BoundCall,
        offset: int,
    ) -> None:
        """Record a call's dispatches, or the call itself if replays may change its scalars."""
        self._kernels[kernel] = None
        self._names[kernel.name] = None
        self._use(*call.blocks)
        # Replays may pack other scalars: the call is kept, not its dispatches.
        if self.changing is not None:
            scalars, names = self.changing
            self._end_row()
            self._parts.append(ReplayedCall(kernel, call.unbound(), scalars, names))
            return
        self._calls += 1
        for block in call.written:
            self._note_write(block)
        for step, group in call.ready:
            shader = step.shader
            at = offset if shader.uniform_bytes else None
            self._commands.append((shader.pipeline, group, at, step.x, step.y))
            self._origins.append((kernel.name, step))

    def record_bound(self, call: BoundDispatch) -> None:
        """Record a dispatch of a pipeline that `kerngen bind` generated."""
        self._end_row()
        self._names[call.name] = None
        self.leases += call.leases
        self._use(*(lease.block for lease in call.leases))
        for block in call.written:
            block.writes += 1
        self._parts.append(call)

    def copy(
        self,
        source: Allocation[Buffer],
        start: int,
        target: Allocation[Buffer],
        offset: int,
        nbytes: int,
    ) -> None:
        """Record a copy."""
        self._end_row()
        self._use(source, target)
        target.writes += 1
        self._parts.append(Copy(source, start, target, offset, nbytes))

    def clear(self, target: Allocation[Buffer], offset: int, nbytes: int) -> None:
        """Record a fill with zeros."""
        self._end_row()
        self._use(target)
        target.writes += 1
        self._parts.append(Clear(target, offset, nbytes))

    def has(self, block: Allocation[Buffer]) -> bool:
        """Refuse an upload: a capture can't record one."""
        del block
        raise within_capture("an upload")

    def stage(self, nbytes: int) -> Allocation[Buffer]:
        """Refuse an upload: a capture can't record one."""
        del nbytes
        raise within_capture("an upload")

    def check_allows(self, what: str) -> None:
        """Refuse an operation that a capture can't record."""
        raise within_capture(what)

    def relieve(self) -> None:
        """Do nothing: a capture grows as its block does."""

    def submit(self) -> None:
        """Do nothing: what a block records never runs by itself."""

    def finish(self) -> None:
        """End the block: prepare the commands, and upload their uniforms."""
        self._end_row()
        self.arena.upload(self._device.queue)

    def release(self) -> None:
        """Free the tape's memory."""
        self._parts.clear()
        self._used.clear()
        self._writes.clear()
        self.leases.clear()
        self.bind_groups.clear()
        self.arena.clear()

    def _use(self, *blocks: Allocation[Buffer]) -> None:
        """Note blocks that replays use."""
        self._used.update(dict.fromkeys(blocks))

    def _note_write(self, block: Allocation[Buffer]) -> None:
        """Count a write by a dispatch: now, and at each replay."""
        block.writes += 1
        self._writes[block] = self._writes.get(block, 0) + 1

    def _end_row(self) -> None:
        """Turn the dispatches since the last part into a part."""
        if self._commands:
            ready = self._ready(self._commands)
            self._parts.append(Dispatches(ready, tuple(self._origins)))
            self._commands, self._origins = [], []

    # ---- replaying

    def replay(self, times: int, changes: Mapping[str, float]) -> None:
        """Encode the tape's parts `times` times, or nothing if one of `changes` is invalid."""
        with self._opened():
            self._replay(times, changes)

    def _replay(self, times: int, changes: Mapping[str, float]) -> None:
        # Everything that may raise comes before the first command.
        calls = [part for part in self._parts if isinstance(part, ReplayedCall)]
        fresh = [call.changed(changes) for call in calls]
        recorder = self._recorder
        if any(isinstance(part, Copy | Clear) for part in self._parts):
            recorder.check_allows("a copy")
        escaped = [block for block in self._used if block.escaped]
        recorder.check_callers_buffers(escaped)
        for call, scalars in zip(calls, fresh, strict=True):
            call.scalars = scalars
        for block, writes in self._writes.items():
            block.writes += writes * times
        try:
            for _ in range(times):
                self._encode(escaped)
        except BaseException as error:
            recorder.give_up(error)
            raise
        finally:
            # `_encode` may submit in between: the blocks are in use by the last recording.
            for block in self._used:
                block.used_in = recorder.serial
        self._counters.calls += self._calls * times

    def _encode(self, escaped: Sequence[Allocation[Buffer]]) -> None:
        """Encode all parts once."""
        for part in self._parts:
            match part:
                case Dispatches():
                    self._encode_row(part, escaped)
                case Copy(source, start, target, offset, nbytes):
                    self._recorder.copy(source, start, target, offset, nbytes)
                case Clear(target, offset, nbytes):
                    self._recorder.clear(target, offset, nbytes)
                case ReplayedCall(kernel, call, scalars):
                    self._launcher.record(kernel, call, scalars)
                    self._counters.calls += 1
                case BoundDispatch():
                    self._recorder.record_bound(part)
                    self._counters.calls += 1
                case _:
                    assert_never(part)

    def _encode_row(
        self, row: Dispatches, escaped: Sequence[Allocation[Buffer]]
    ) -> None:
        """Encode dispatches, submitting in between as calls would."""
        recorder, start, total = self._recorder, 0, len(row.commands)
        while start < total:
            # Again in each turn: a submission has cleared the recorder's notes.
            recorder.expect(self._names, self._writes, escaped)
            if recorder.tracer is None:
                stop = min(total, start + recorder.room)
                compute = recorder.open_pass()
            else:
                # In a profile, each dispatch has a timed pass of its own.
                stop = start + 1
                compute = recorder.open_traced_pass(
                    recorder.tracer, *row.origins[start]
                )
            row.commands.encode(compute, start, stop)
            recorder.note_dispatches(stop - start)
            start = stop


@final
class TapeLauncher:
    """A launcher that records on a tape, as `Launcher` does on the recorder."""

    def __init__(self, tape: Tape, capture: Capture, launcher: Launcher) -> None:
        """Launch by a launcher that records on the capture's tape."""
        self._tape = tape
        self._capture = capture
        self._launcher = launcher

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> tuple[AnyTensor, ...]:
        """Check the arguments, record the kernel and return its outputs."""
        names = self._capture.changeable(kernel, scalars)
        if names:
            self._tape.changing = prepare(kernel, scalars), names
        try:
            results = self._launcher.launch(ctx, kernel, tensors, scalars, out)
        finally:
            self._tape.changing = None
        self._tape.leases += [tensor.lease for tensor in tensors + results]
        return results
