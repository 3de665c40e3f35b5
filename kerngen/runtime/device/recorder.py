"""The recorder: one encoder, one compute pass between copies, one submission.

Calls and copies that are recorded one after another share an encoder:

    call, call, copy, call, read   ->   | pass: dispatches | copies | pass | copies |  submit

WebGPU makes each dispatch of a pass see what those before it wrote, so that a pass needs no
barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol, final

from kerngen.runtime.calls.call_plan import BoundCall, PlannedDispatch, Ready
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.arena import UniformArena
from kerngen.runtime.device.direct import encoders_of
from kerngen.runtime.device.gpu import (
    BindGroup,
    Buffer,
    ComputePass,
    Device,
    Encoder,
    translate,
)
from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.pool import Pool
from kerngen.runtime.device.shaders import CompiledShader
from kerngen.runtime.device.storage import Allocation
from kerngen.runtime.device.timing import Stamps, within_timed
from kerngen.runtime.device.tracer import Tracer
from kerngen.runtime.errors import ValidationError
from kerngen.runtime.profile import within_profile

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel
    from kerngen.runtime.device.bound import BoundDispatch

_NO_OFFSETS: tuple[int, ...] = ()

_FIRST_PIECE: Final = 8
_GROWTH: Final = 16
"""Dispatches of the first submission to an idle device, and how many more each next one has.

A submission costs some 40 us of Python, as 8 calls do.  Pieces that grow by a constant
make the sum of that cost, and of what the device has left to do once all is recorded,
grow as the root of the number of calls, whichever of the two is slower: of 10,000 calls
of 5 us on a device that takes 2 us each, some 3.5 % and 1 %.
"""

_PAUSE: Final = 5e-3
"""Seconds without a submission after which a device is taken for idle."""


class Recording(Protocol):
    """Where calls and copies are recorded: the recorder, or a capture's tape."""

    @property
    def serial(self) -> int:
        """The number of the current recording; no two have the same."""
        ...

    def record(
        self,
        kernel: Kernel,
        call: BoundCall,
        offset: int,
    ) -> None:
        """Record a call; its uniforms are at `offset` of their chunk."""
        ...

    def record_bound(self, call: BoundDispatch) -> None:
        """Record a dispatch of a pipeline that `kerngen bind` generated."""
        ...

    def copy(
        self,
        source: Allocation[Buffer],
        start: int,
        target: Allocation[Buffer],
        offset: int,
        nbytes: int,
    ) -> None:
        """Record a copy of `nbytes`; offsets and size are multiples of 4."""
        ...

    def clear(self, target: Allocation[Buffer], offset: int, nbytes: int) -> None:
        """Record that `nbytes` from `offset` on, both multiples of 4, are filled with zeros."""
        ...

    def has(self, block: Allocation[Buffer]) -> bool:
        """Whether recorded work uses a block: an upload now would come before that work."""
        ...

    def stage(self, nbytes: int) -> Allocation[Buffer]:
        """Return a staging buffer, which is given back when the recording is submitted."""
        ...

    def check_allows(self, what: str) -> None:
        """Refuse an operation that can't be recorded now; `what` names it in the error."""
        ...

    def relieve(self) -> None:
        """Submit if the recording has grown past its limits and no batch is open."""
        ...

    def submit(self) -> None:
        """Submit the recorded work."""
        ...


@final
class Recorder:
    """Records work until it is submitted; needs the context's lock throughout.

    - `serial`: the number of the recording; a block whose `used_in` equals it is in use
      by work that is not submitted yet
    - `compute`, `bound`: the open pass, and the shader whose pipeline is set in it
    - `tracer`: the tracer of an open `profile()`; `timed`: the timestamps of an open `timed()`
    - `names`: the kernels of the recording, in order: a dict whose values are None
    - `escaped`, `written`: the callers' buffers that it uses, the blocks that it writes
    - `held`: the depth of open batches
    - `dispatches`, `temporary_bytes`: what is recorded so far, for the limits
    """

    def __init__(
        self,
        device: Device,
        *,
        arena: UniformArena,
        probe: Callable[[Buffer], None],
        staging: Pool[Buffer],
        counters: Counters,
        limits: Limits,
    ) -> None:
        """Start with nothing recorded; `probe` raises if a buffer is destroyed."""
        self.serial = 0
        self.compute: ComputePass | None = None
        self.bound: CompiledShader | None = None
        self._group: BindGroup | None = None
        self._offset: int | None = None
        self.names: dict[str, None] = {}
        self.escaped: set[Allocation[Buffer]] = set()
        self.written: set[Allocation[Buffer]] = set()
        self.held = 0
        self.dispatches = 0
        self.temporary_bytes = 0
        self._piece = _FIRST_PIECE
        self._submitted_at = 0.0
        self.tracer: Tracer | None = None
        self.timed: Stamps | None = None
        self._encoder: Encoder | None = None
        self._stamps: list[Stamps] = []
        self._staged: list[Allocation[Buffer]] = []
        self._device = device
        self._make_encoder = encoders_of(device)
        self._arena = arena
        self._probe = probe
        self._staging = staging
        self._counters = counters
        self._limits = limits

    def open_pass(self) -> ComputePass:
        """Return the open compute pass, beginning one if there is none."""
        if self.compute is None:
            self.compute = self._open_encoder().begin_compute_pass()
            self.bound = None
            self._counters.passes += 1
        return self.compute

    def begin_timed(self, stamps: Stamps) -> None:
        """Submit recorded work, and begin a pass between two timestamps, `stamps`.

        Until `timed` is set to None, the recording consists of this pass alone.
        """
        self.check_allows("another timed()")
        if self.tracer is not None:
            raise within_profile("timed()")
        self.submit()
        with self._whole():
            self._open_stamped_pass(stamps)
            self.timed = stamps

    def begin_profile(self, tracer: Tracer) -> None:
        """Give every dispatch its own timed pass, until `tracer` is set to None."""
        self.check_allows("a profile()")
        if self.tracer is not None:
            raise within_profile("another profile()")
        with self._whole():
            self._close_pass()
            self.tracer = tracer

    def open_traced_pass(
        self, tracer: Tracer, kernel: str, step: PlannedDispatch
    ) -> ComputePass:
        """Begin the timed pass of one dispatch, and return it."""
        self._close_pass()
        call = self._counters.calls
        return self._open_stamped_pass(tracer.note(self.serial, call, kernel, step))

    def check_allows(self, what: str) -> None:
        """Refuse an operation that would end a timed pass."""
        if self.timed is not None:
            raise within_timed(what)

    def copy(
        self,
        source: Allocation[Buffer],
        start: int,
        target: Allocation[Buffer],
        offset: int,
        nbytes: int,
    ) -> None:
        """Record a copy of `nbytes`; offsets and size are multiples of 4."""
        self.check_allows("a copy")
        with self._whole():
            encoder = self._open_copies()
            self.use(source)
            self.write(target)
            encoder.copy_buffer_to_buffer(
                source.memory, start, target.memory, offset, nbytes
            )
        self._counters.copies += 1

    def clear(self, target: Allocation[Buffer], offset: int, nbytes: int) -> None:
        """Record that `nbytes` from `offset` on, both multiples of 4, are filled with zeros."""
        self.check_allows("a copy")
        with self._whole():
            encoder = self._open_copies()
            self.write(target)
            encoder.clear_buffer(target.memory, offset, nbytes)
        self._counters.copies += 1

    def record(
        self,
        kernel: Kernel,
        call: BoundCall,
        offset: int,
    ) -> None:
        """Record the dispatches of a call, each with its bind group."""
        # Once in a recording: a call that is repeated adds nothing to the sets.
        if call.noted_in != self.serial:
            self._note(kernel, call)
        for block in call.written:
            block.writes += 1
        ready = call.ready
        try:
            if self.tracer is None:
                self._dispatch(ready, offset)
            else:
                for each in ready:
                    # Each dispatch in a pass of its own, between two timestamps.
                    self.open_traced_pass(self.tracer, kernel.name, each[0])
                    self._dispatch((each,), offset)
        except BaseException as error:
            # KeyboardInterrupt, too: it may have left a part of the kernel out.
            self.give_up(error)
            raise
        self.note_dispatches(len(ready))

    def _note(self, kernel: Kernel, call: BoundCall) -> None:
        """Note what a call uses and writes, once in a recording."""
        self.names[kernel.name] = None
        # Calls share temporaries, which the pool has back when a call is recorded.
        given = len(call.blocks) - len(call.plan.inner)
        for block in call.blocks[given:]:
            if block.used_in != self.serial:
                self.temporary_bytes += block.capacity
        for block in call.blocks:
            self.use(block)
        self.written.update(call.written)
        call.noted_in = self.serial

    def record_bound(self, call: BoundDispatch) -> None:
        """Record a dispatch of a pipeline that `kerngen bind` generated."""
        self.names[call.name] = None
        for lease in call.leases:
            self.use(lease.block)
        for block in call.written:
            self.write(block)
        try:
            if self.tracer is None:
                compute = self.open_pass()
            else:
                compute = self.open_traced_pass(self.tracer, call.name, call.step)
            call.encode(compute)
        except BaseException as error:
            self.give_up(error)
            raise
        # It has set a pipeline and bind groups of its own: the next call sets them anew.
        self.bound = None
        self.note_dispatches(1)

    def note_dispatches(self, number: int) -> None:
        """Count `number` recorded dispatches, and submit if enough is recorded (`relieve`)."""
        self._counters.dispatches += number
        self.dispatches += number
        if not self.held:
            self.relieve()

    @property
    def room(self) -> int:
        """How many more dispatches the recording takes before it is submitted; 1 at least."""
        most = self._limits.dispatches if self.held else self._piece
        return max(1, min(most, self._limits.dispatches) - self.dispatches)

    def expect(
        self,
        names: Mapping[str, None],
        written: Iterable[Allocation[Buffer]],
        escaped: Iterable[Allocation[Buffer]],
    ) -> None:
        """Note the kernels and buffers of dispatches that a tape encodes in the open pass."""
        self.names.update(names)
        self.written.update(written)
        self.escaped.update(escaped)
        self.bound = None

    def _dispatch(self, bound: Sequence[Ready], offset: int) -> None:
        """Encode dispatches, without the calls that would set what is set already."""
        compute = self.compute or self.open_pass()
        for step, group in bound:
            shader = step.shader
            if self.bound is not shader:
                compute.set_pipeline(shader.pipeline)
                self.bound = shader
                self._group = None
            at = offset if shader.uniform_bytes else None
            # A repeated call has the same group and, with equal scalars, the same offset.
            if self._group is not group or self._offset != at:
                compute.set_bind_group(0, group, _NO_OFFSETS if at is None else (at,))
                self._group, self._offset = group, at
            compute.dispatch_workgroups(step.x, step.y)

    def has(self, block: Allocation[Buffer]) -> bool:
        """Whether recorded work uses a block: an upload now would come before that work."""
        return block.used_in == self.serial

    def use(self, block: Allocation[Buffer]) -> None:
        """Note that recorded work uses a block."""
        block.used_in = self.serial
        if block.escaped:
            self.escaped.add(block)

    def write(self, block: Allocation[Buffer]) -> None:
        """Note that recorded work writes a block."""
        self.use(block)
        block.writes += 1
        self.written.add(block)

    def stage(self, nbytes: int) -> Allocation[Buffer]:
        """Return a staging buffer, which is given back when the recording is submitted."""
        block = self._staging.acquire(nbytes)
        self._staged.append(block)
        self.temporary_bytes += block.capacity
        return block

    def relieve(self) -> None:
        """Submit if enough is recorded and no batch is open.

        Enough is a piece of work, which keeps the device busy, or as much as one of the limits
        allows.
        """
        if self.held:
            return
        limits, dispatches = self._limits, self.dispatches
        if (
            dispatches >= self._piece
            or dispatches >= limits.dispatches
            or self.temporary_bytes >= limits.temporary_bytes
        ):
            self.submit()

    def note_idle(self) -> None:
        """Note that the device is idle: the next submission comes after few dispatches."""
        self._piece = _FIRST_PIECE

    def submit(self) -> None:
        """Submit the recorded work; if that fails, drop it and name its kernels."""
        self.check_allows("a submission")
        if self._encoder is None:
            return
        try:
            # 1. The commands end, with those that make timestamps readable.
            self._close_pass()
            self._check_escaped(self.escaped)
            for stamps in self._stamps:
                stamps.resolve(self._encoder)
            commands = self._encoder.finish()
            # 2. The queue writes the uniforms before it runs the commands that read them.
            self._arena.upload(self._device.queue)
            self._device.queue.submit([commands])
            self._counters.submits += 1
            # 3. The next recording begins, and may be longer.
            self._piece += _GROWTH
            self._submitted_at = perf_counter()
            for stamps in self._stamps:
                stamps.submitted = True
            self._begin_anew()
        except BaseException as error:
            # KeyboardInterrupt, too: it is unknown then what the device got.
            names = self.describe()
            self.lose()
            if isinstance(error, Exception):
                raise translate(error, f"to run {names}") from error
            raise

    @contextmanager
    def _whole(self) -> Generator[None]:
        """Drop the recording if an interrupt ends the block, which records a part of it.

        An error of wgpu is left to the caller.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                self.lose()
            raise

    def give_up(self, error: BaseException) -> None:
        """Drop the recording after an error of wgpu, and raise that as one of our errors.

        An interrupt is not raised: the caller does that.
        """
        names = self.describe()
        self.lose()
        if isinstance(error, Exception):
            raise translate(error, f"to record {names}") from error

    def lose(self) -> None:
        """Drop the recorded work, and count a loss for each block that it writes."""
        self._count_losses()
        self._arena.invalidate()
        self._begin_anew()

    def _count_losses(self) -> None:
        """Count a loss for each block that the dropped recording would have written."""
        for block in self.written:
            block.losses += 1

    def _begin_anew(self) -> None:
        """Begin the next recording, with a new serial number and nothing in use."""
        self._encoder = None
        self._stamps.clear()
        self.timed = None
        self.compute = None
        self.serial += 1
        self.dispatches = 0
        self.temporary_bytes = 0
        self.names.clear()
        self.escaped.clear()
        self.written.clear()
        self._arena.reset()
        # The queue writes after what was submitted: staging buffers may be filled again.
        while self._staged:
            self._staging.release(self._staged.pop())

    def describe(self) -> str:
        """Return the names of the recording's kernels in words, for errors."""
        if not self.names:
            return "recorded copies"
        names = ", ".join(f"'{name}'" for name in self.names)
        return f"the recorded kernel{'s' if len(self.names) > 1 else ''} {names}"

    def check_callers_buffers(self, blocks: Iterable[Allocation[Buffer]]) -> None:
        """Refuse callers' buffers that are mapped or destroyed, with errors of ours."""
        try:
            self._check_escaped(blocks)
        except Exception as error:
            raise translate(error, "to use a caller's buffer") from error

    def _check_escaped(self, blocks: Iterable[Allocation[Buffer]]) -> None:
        """Refuse callers' buffers that would make wgpu abort the process."""
        for block in blocks:
            if block.memory.map_state != "unmapped":
                raise ValidationError(
                    f"A caller's buffer is mapped while {self.describe()} should use "
                    f"it; unmap it first."
                )
            self._probe(block.memory)

    def _open_encoder(self) -> Encoder:
        """Return the recording's encoder, made at its first command."""
        if self._encoder is None:
            if perf_counter() - self._submitted_at > _PAUSE:
                self.note_idle()
            self._encoder = self._make_encoder()
            self._counters.encoders += 1
        return self._encoder

    def _open_stamped_pass(self, stamps: Stamps) -> ComputePass:
        """Begin a pass between two timestamps."""
        # All passes of a recording share their `Stamps`, up to the room of a query set.
        if stamps not in self._stamps[-1:]:
            self._stamps.append(stamps)
        encoder = self._open_encoder()
        opened = encoder.begin_compute_pass(timestamp_writes=stamps.next_pass())
        self.compute = opened
        self.bound = None
        self._counters.passes += 1
        return opened

    def _open_copies(self) -> Encoder:
        """Return the encoder for a copy, which WebGPU allows outside of passes alone."""
        self._close_pass()
        return self._open_encoder()

    def _close_pass(self) -> None:
        if self.compute is not None:
            compute, self.compute = self.compute, None
            compute.end()
