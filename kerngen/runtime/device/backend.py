"""The backend that runs on a wgpu device."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, cast, final
from weakref import WeakSet

import numpy as np

from kerngen.runtime.backend import AnyTensor, Bytes, Download, Kind, Range
from kerngen.runtime.caches import Cache, Counted
from kerngen.runtime.calls.call_plan import CallPlan, Capabilities
from kerngen.runtime.calls.capture import Capture, reloaded, within_capture
from kerngen.runtime.calls.choices import Choice
from kerngen.runtime.calls.launch import Launcher, PlanKey
from kerngen.runtime.calls.planner import Planner
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.arena import UniformArena
from kerngen.runtime.device.bound import BoundPipelines
from kerngen.runtime.device.gpu import Buffer, Device, GPUBuffer, GPUDevice, translate
from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.mapping import Map, Polling, PromisedMapping, mapping_of
from kerngen.runtime.device.memory import Memory
from kerngen.runtime.device.native import MakeModule, tick_seconds
from kerngen.runtime.device.recorder import Recorder, Recording
from kerngen.runtime.device.shaders import BindGroups, ShaderCache
from kerngen.runtime.device.storage import Lease
from kerngen.runtime.device.tape import Tape, TapeLauncher
from kerngen.runtime.device.timing import Span, Stamps, TimestampSlots
from kerngen.runtime.device.tracer import Tracer
from kerngen.runtime.device.transfer import PendingReads, Transfers
from kerngen.runtime.errors import DeviceLost, FeatureError
from kerngen.runtime.late import FinishedCopy
from kerngen.runtime.lifecycle import (
    ClosedState,
    closed,
    forked,
    lost,
    register,
)
from kerngen.runtime.profile import Profile

if TYPE_CHECKING:
    from kerngen.runtime.bound.pipeline import Dispatch, Size
    from kerngen.runtime.calls.kernel import Dims, Kernel
    from kerngen.runtime.context import Context


_PLANS = 4096
"""The most calls that a context keeps the plan of, with the shaders that they run."""

_POLLING: Mapping[Kind, Polling] = {
    "gpu": Polling(400e-6, share=1 / 64),
    "software": Polling(50e-6, share=1 / 16),
}
"""How readers poll.

To sleep and to wake takes 60 us or more.  100 additions of 2^26 numbers and a read take an
H200 19.2 ms, 19.5 with pauses of a sixteenth and 19.05 with the shortest, while the processor
is busy for 15 %, 11 % and 25 % of that.  On a software adapter a reader polls less, as it takes
its time from the threads that compute.
"""


@final
class GpuBackend:
    """The backend of a wgpu device: its memory, caches and recording, behind one lock.

    An open batch holds the lock, so that calls from other threads wait for its end.  The
    way of a call, each part with its own class:

        launch -> Launcher:  check, plan (`Planner`), lease (`Memory`), pack, bind
               -> Recorder:  encode dispatches; submit now and then
        upload, copy, read -> Transfers -> Recorder

    While a capture's block is open, `_on` replaces launcher and transfers by others that
    record on a `Tape`.
    """

    def __init__(
        self,
        device: Device,
        capabilities: Capabilities,
        *,
        kind: Kind,
        adapter_name: str,
        owned: bool,
        make_module: MakeModule | None = None,
    ) -> None:
        """Take a device into use; one that is `owned` goes when the backend closes.

        `make_module` makes shader modules without checks; without it they have them.
        """
        self.kind: Kind = kind
        self.adapter_name = adapter_name
        self.alignment = capabilities.storage_alignment
        self.max_tensor_bytes = capabilities.tensor_bytes
        self.counters = Counters()
        self.limits = Limits()
        self._device = device
        self._owned = owned
        self._ended: ClosedState | None = None
        self._readings = 0
        self._lock = RLock()
        self._capabilities = capabilities
        self.unchecked = make_module is not None
        self._shaders = ShaderCache(device, self.counters, make_module)
        self._assemble(capabilities)
        register(self)

    def _assemble(self, capabilities: Capabilities) -> None:
        """Make the parts of the backend, each after those that it uses."""
        device, counters, limits = self._device, self.counters, self.limits
        self._bind_groups = BindGroups(device, counters)
        self._memory = Memory(
            device,
            bind_groups=self._bind_groups,
            counters=counters,
            limits=limits,
            largest=capabilities.buffer_bytes,
        )
        self._arena = arena = UniformArena(self._memory.uniform_chunk)
        self._recorder = Recorder(
            device,
            arena=arena,
            probe=self._bind_groups.probe,
            staging=self._memory.uploads,
            counters=counters,
            limits=limits,
        )
        self._map = mapping_of(device, _POLLING[self.kind])
        self._transfers = self._make_transfers(self._recorder)
        self._planner = Planner(capabilities, self._shaders)
        self._bound = BoundPipelines(
            device, capabilities, self._shaders, self._memory, counters
        )
        self._plans: Cache[PlanKey, CallPlan] = Cache("plans", _PLANS)
        self._recorded = self._make_launcher(
            self._bind_groups, arena, self._recorder, self._transfers
        )
        self._launcher: Launcher | TapeLauncher = self._recorded
        self._captures: WeakSet[Capture] = WeakSet()
        """The captures whose memory is on this device; they end when the backend does."""
        self._tape: Tape | None = None
        """The tape of the capture whose block is open, if one is."""

    def _make_transfers(self, recorder: Recording) -> Transfers:
        return Transfers(
            self._device, self._memory, recorder, self.counters, map_=self._map
        )

    def _make_launcher(
        self,
        bind_groups: BindGroups,
        arena: UniformArena,
        recorder: Recording,
        transfers: Transfers,
    ) -> Launcher:
        """Return a launcher that records there; all of them have the same plans."""
        return Launcher(
            plans=self._plans,
            planner=self._planner,
            memory=self._memory,
            bind_groups=bind_groups,
            arena=arena,
            recorder=recorder,
            transfers=transfers,
            counters=self.counters,
        )

    @property
    def device(self) -> GPUDevice:
        """The device."""
        self._check_open()
        return self._device

    @property
    def caches(self) -> Mapping[str, Counted]:
        """The caches and pools by name."""
        caches: list[Counted] = [
            self._plans,
            self._shaders.cache,
            self._bind_groups.cache,
            self._memory.storage,
            self._memory.uploads,
            self._memory.readbacks,
        ]
        return {cache.name: cache for cache in caches}

    def forget_kernels(self, kernels: frozenset[Kernel]) -> None:
        """Drop the plans of kernels, and the pipelines that only these plans use."""
        with self._lock:
            for capture in list(self._captures):
                for kernel in kernels.intersection(capture.recorded.kernels):
                    capture.end(partial(reloaded, kernel.name))
            dropped = self._recorded.forget(kernels)
            self._shaders.forget(dropped)
            self._bind_groups.forget_shaders(frozenset(one.uid for one in dropped))

    def lease(self, nbytes: int, least: int = 0) -> Lease[Buffer]:
        """Return padded storage for `nbytes`, with undefined contents and room for `least`."""
        with self._open():
            return self._memory.lease(nbytes, least)

    def wrap(self, buffer: GPUBuffer, offset: int, nbytes: int) -> Lease[Buffer]:
        """Return a lease of a caller's buffer."""
        with self._open():
            return self._memory.wrap(buffer, offset, nbytes)

    def hand_out(self, lease: Lease[Buffer]) -> GPUBuffer:
        """Submit recorded work, and return the buffer of a lease for the caller's use."""
        with self._open():
            # The caller's own submissions are to come after all that is recorded on the buffer.
            if lease.block.used_in == self._recorder.serial:
                self._recorder.submit()
            return self._memory.hand_out(lease)

    def clear(self, lease: Lease[Buffer], offset: int, nbytes: int) -> None:
        """Fill a range of a lease with zeros."""
        with self._open():
            self._keep(lease)
            self._transfers.clear(lease, offset, nbytes)

    def upload(self, lease: Lease[Buffer], offset: int, data: Bytes) -> None:
        """Store the bytes `data` in a lease, from byte `offset` on."""
        with self._open():
            self._transfers.upload(lease, offset, data)

    def download(
        self, ranges: Sequence[Range], into: Sequence[Bytes] = ()
    ) -> list[Bytes]:
        """Return copies of the ranges; other threads may record while this one waits."""
        copies: list[Bytes] = []
        # `grouped` leaves empty ranges out, and so do the goals: they pair up with `copies`.
        goals = [each for each in into if each.nbytes]
        for group in grouped(ranges, self._capabilities.buffer_bytes):
            reading = self._begin_reads(group)
            with self._abandoning(reading):
                reading.mapping.wait()
            copies += self._end_read(reading, goals[len(copies) :][: len(group)])
        return _with_empty(ranges, copies)

    async def download_async(self, ranges: Sequence[Range]) -> list[Bytes]:
        """Return copies of ranges of leases, without blocking the event loop."""
        copies: list[Bytes] = []
        for group in grouped(ranges, self._capabilities.buffer_bytes):
            # A mapping of our own blocks while it polls; wgpu's promise can be awaited.
            promised = partial(PromisedMapping, self._device)
            reading = self._begin_reads(group, promised)
            with self._abandoning(reading):
                await cast("PromisedMapping", reading.mapping).wait_async()
            copies += self._end_read(reading)
        return _with_empty(ranges, copies)

    def begin_download(self, wanted: Range) -> Download:
        """Submit recorded work, begin to copy a range, and return without waiting."""
        if not wanted[2]:
            return FinishedCopy(np.zeros(0, np.uint8))
        return _Begun(self, self._begin_reads([wanted]))

    def finish_begun(self, reading: PendingReads) -> Bytes:
        """Return the bytes of a copy that was begun; later work may still run."""
        with self._abandoning(reading):
            reading.mapping.wait()
        (data,) = self._end_read(reading, later=True)
        return data

    def abandon_begun(self, reading: PendingReads) -> None:
        """Abandon a copy that was begun."""
        with self._lock:
            self._memory.readbacks.discard(reading.block)
            self._finish_reading()

    def copy(self, source: AnyTensor, target: AnyTensor) -> None:
        """Copy the elements of a tensor to another of the same size."""
        with self._open():
            self._keep(source.lease, target.lease)
            self._transfers.copy(source, target)

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> tuple[AnyTensor, ...]:
        """Check the arguments, record the kernel and return its outputs."""
        # `_open`, written out: every call of a kernel passes here, and a generator as a
        # context manager would add its own calls.
        with self._lock:
            if self._ended is not None:
                self._check_open()
            try:
                return self._launcher.launch(ctx, kernel, tensors, scalars, out)
            except DeviceLost:
                self._end(lost)
                raise

    def dispatch(self, call: Dispatch, grid: Size) -> None:
        """Record `grid` workgroups of a pipeline that `kerngen bind` generated."""
        with self._open():
            tape = self._tape
            recording: Recording = self._recorder if tape is None else tape
            arena = self._arena if tape is None else tape.arena
            groups = self._bind_groups if tape is None else tape.bind_groups
            recording.record_bound(self._bound.ready(call, grid, arena, groups))

    def choices(self, kernel: Kernel, dims: Dims) -> tuple[Choice, ...]:
        """Return which schedules a launch would run for these dims."""
        return self._planner.choices(kernel, dims)

    def submit(self) -> None:
        """Submit what is recorded."""
        with self._open():
            self._recorder.submit()

    @contextmanager
    def batch(self) -> Generator[None, None, None]:
        """Hold back submission until the block ends; after an error, calls before it count."""
        with self._open():
            held = self._recorder.held
            try:
                self._recorder.held = held + 1
                yield
            finally:
                # Batches nest: the outermost one submits.
                self._recorder.held = held
                if not held:
                    self._recorder.submit()

    @property
    def is_capturing(self) -> bool:
        """Whether the block of a capture is open; waits while another thread's block is."""
        with self._lock:
            return self._tape is not None

    @contextmanager
    def capture(self) -> Generator[Capture, None, None]:
        """Record the calls of a block on a tape, for replays, without running them."""
        # The lock is held for the whole block: other threads' calls are not captured.
        with self._open():
            self._check_not_captured("another capture()")
            self._recorder.check_allows("a capture()")
            tape = Tape(
                self._device,
                memory=self._memory,
                launcher=self._recorded,
                recorder=self._recorder,
                counters=self.counters,
                opened=self._replaying,
            )
            capture = Capture(tape)
            self._captures.add(capture)
            with capture.block(), self._on(tape, capture):
                yield capture

    @contextmanager
    def _replaying(self) -> Generator[None, None, None]:
        """Lock the context for a replay, which can't be a part of a capture itself."""
        with self._open():
            self._check_not_captured("a replay()")
            yield

    @contextmanager
    def _on(self, tape: Tape, capture: Capture) -> Generator[None, None, None]:
        """Record calls, copies and leases on a tape, and not on the recorder, in a block."""
        usual = self._launcher, self._transfers
        transfers = self._make_transfers(tape)
        launcher = self._make_launcher(tape.bind_groups, tape.arena, tape, transfers)
        try:
            self._tape, self._memory.kept = tape, tape.leases
            self._launcher = TapeLauncher(tape, capture, launcher)
            self._transfers = transfers
            yield
            tape.finish()
        finally:
            self._launcher, self._transfers = usual
            self._tape = self._memory.kept = None

    def _keep(self, *leases: Lease[Buffer]) -> None:
        """Keep the leases of a copy in a capture's block: its replays use them again."""
        if self._tape is not None:
            self._tape.leases += leases

    def _check_not_captured(self, what: str) -> None:
        if self._tape is not None:
            raise within_capture(what)

    @contextmanager
    def timed(self) -> Generator[Span, None, None]:
        """Time what a block records, as one compute pass between two timestamps."""
        with self._open():
            self._check_not_captured("a timed()")
            self._check_timestamps("timed")
            span, stamps = Span(), Stamps(TimestampSlots(self._device, 1))
            held = self._recorder.held
            try:
                self._recorder.begin_timed(stamps)
                self._recorder.held = held + 1
                yield span
            finally:
                # What must not be left out comes first: an interrupt may end this block
                # at any line.
                self._recorder.held = held
                if self._recorder.timed is stamps:
                    self._recorder.timed = None
                span.finish(partial(self._seconds, stamps))
                if self._recorder.timed is None:
                    self._recorder.submit()

    @contextmanager
    def profile(self) -> Generator[Profile, None, None]:
        """Time each dispatch of a block by itself."""
        tracer, profile = Tracer(self._device), Profile(self.adapter_name)
        try:
            with self._open():
                self._check_not_captured("a profile()")
                self._check_timestamps("profile")
                self._recorder.begin_profile(tracer)
            yield profile
        finally:
            # Without `_open`: a context that was closed within the block keeps its events.
            with self._lock:
                if self._recorder.tracer is tracer:
                    self._recorder.tracer = None
                    if self._ended is None:
                        self._recorder.submit()
            profile.finish(tracer.read())

    def _seconds(self, stamps: Stamps) -> float:
        """Wait for a timed block; return the seconds between its two timestamps."""
        self._check_open()
        begin, end = map(int, stamps.read()[0])
        return max(end - begin, 0) * tick_seconds(self._device)

    def _check_timestamps(self, what: str) -> None:
        if not self._capabilities.timestamps:
            lack = self._capabilities.lack_of("timestamp-query")
            raise FeatureError(f"{what}() takes timestamps; {lack}.")

    def trim(self) -> None:
        """Free the memory that no tensor uses."""
        with self._open():
            self._memory.trim()

    def close(self) -> None:
        """Submit what is recorded and free everything; closing twice is fine.

        Reads in other threads that have begun are finished.
        """
        with self._lock:
            if self._ended is not None:
                return
            self._recorder.check_allows("its context")
            try:
                self._recorder.submit()
                if self._recorder.tracer is not None:
                    # Its profile ends without a device to read from.
                    self._recorder.tracer.read()
            finally:
                self._end(closed)

    def invalidate_after_fork(self) -> None:
        """Refuse all calls in a forked process, which lacks the device's threads."""
        self._ended = self._ended or forked
        self._lock = RLock()

    def _end(self, how: ClosedState) -> None:
        """Refuse calls from now on with the error `how`, and drop all memory and caches."""
        self._ended = how
        for capture in list(self._captures):
            capture.end(how)
        self._recorder.lose()
        self._memory.trim()
        self._bind_groups.clear()
        self._bound.clear()
        self._plans.clear()
        self._arena.clear()
        # Contexts on one device share its pipelines: those of a caller's device stay.
        if self._owned or how is lost:
            self._shaders.cache.clear()
        self._let_go()

    @contextmanager
    def _open(self) -> Generator[None, None, None]:
        """Lock a context that is open; it ends if its device is lost meanwhile."""
        with self._lock:
            self._check_open()
            try:
                yield
            except DeviceLost:
                self._end(lost)
                raise

    def _begin_reads(
        self, ranges: Sequence[Range], map_: Map | None = None
    ) -> PendingReads:
        with self._open():
            reading = self._transfers.begin_reads(ranges, map_)
            self._readings += 1
            return reading

    @contextmanager
    def _abandoning(self, reading: PendingReads) -> Generator[None, None, None]:
        """Give a read up if the block fails or is cancelled, and translate wgpu's error."""
        try:
            yield
        except BaseException as error:
            self.abandon_begun(reading)
            if isinstance(error, Exception):
                with self._open():
                    raise translate(error, "to read a tensor") from error
            raise

    def _end_read(
        self, reading: PendingReads, into: Sequence[Bytes] = (), *, later: bool = False
    ) -> list[Bytes]:
        """Return the bytes of a mapped read, and its staging buffer to the pool.

        Of a read that was begun for `later`, work recorded since may still run: the device
        is not taken for idle then.
        """
        with self._abandoning(reading):  # the device may be lost even now
            data = reading.finish(into)
        with self._lock:
            self._transfers.end_reads(reading)
            if not later:
                self._recorder.note_idle()
            self._finish_reading()
        return data

    def _finish_reading(self) -> None:
        """Count a read as finished; the last one lets a closed device be destroyed."""
        self._readings -= 1
        self._let_go()

    def _let_go(self) -> None:
        """Destroy an owned device once the backend has ended and no read is under way.

        Reads that other threads wait for are served first: wgpu would forget them.
        """
        if self._ended is not None and self._owned and not self._readings:
            self._device.destroy()

    def _check_open(self) -> None:
        if self._ended is not None:
            raise self._ended()


@final
class _Begun:
    """A `Download` that was begun: a copy on its way to a staging buffer of its own."""

    def __init__(self, backend: GpuBackend, reading: PendingReads) -> None:
        self._backend = backend
        self._reading = reading

    def finish(self) -> Bytes:
        return self._backend.finish_begun(self._reading)

    def abandon(self) -> None:
        self._backend.abandon_begun(self._reading)


def grouped(ranges: Sequence[Range], most: int) -> Iterator[list[Range]]:
    """Yield the non-empty ranges in groups that each fit a staging buffer of `most` bytes."""
    group: list[Range] = []
    total = 0
    for each in ranges:
        # Whole words are read: up to 3 bytes more before the range, and 3 behind it.
        nbytes = each[2] + 8
        if group and total + nbytes > most:
            yield group
            group, total = [], 0
        if each[2]:
            group.append(each)
            total += nbytes
    if group:
        yield group


def _with_empty(ranges: Sequence[Range], copies: Sequence[Bytes]) -> list[Bytes]:
    """Return the copies in order, with empty ones for the ranges that are empty."""
    rest = iter(copies)
    return [next(rest) if nbytes else np.empty(0, np.uint8) for _, _, nbytes in ranges]
