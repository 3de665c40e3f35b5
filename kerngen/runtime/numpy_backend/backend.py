"""The backend without a device: NumPy runs each kernel's reference, at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import combinations, count
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast, final
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from kerngen.plan.tree import stages_of
from kerngen.runtime.backend import AnyTensor, Bytes, Download, Kind, Range
from kerngen.runtime.caches import Counted
from kerngen.runtime.calls.aliasing import check_overlap
from kerngen.runtime.calls.capture import Capture, reloaded, within_capture
from kerngen.runtime.calls.checks import check_arguments, check_out, resolve
from kerngen.runtime.calls.choices import Choice
from kerngen.runtime.calls.scalars import check_scalars, prepare
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.gpu import GPUBuffer, GPUDevice
from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.pool import Pool
from kerngen.runtime.device.storage import Allocation, Lease
from kerngen.runtime.device.timing import Span, within_timed
from kerngen.runtime.errors import ContextError, FeatureError, OutOfMemoryError
from kerngen.runtime.late import FinishedCopy
from kerngen.runtime.lifecycle import closed, register
from kerngen.runtime.numpy_backend.tape import CheckedCall, NumpyTape
from kerngen.runtime.profile import Event, Profile, within_profile
from kerngen.runtime.tensor import Tensor
from kerngen.runtime.values.arrays import as_elements, copied, numpy_shape, window
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.packing import element_bytes, is_packed, pack4
from kerngen.runtime.values.shapes import Shape

if TYPE_CHECKING:
    from kerngen.runtime.bound.pipeline import Dispatch, Size
    from kerngen.runtime.calls.kernel import Dims, Kernel
    from kerngen.runtime.context import Context


@final
class NumpyBackend:
    """The backend that runs kernels in NumPy, with the checks and errors of a device."""

    def __init__(self) -> None:
        """Start empty."""
        self.kind: Kind = "reference"
        self.unchecked = False
        self.adapter_name = f"NumPy {np.__version__}"
        self.alignment = 1
        self.max_tensor_bytes = sys.maxsize
        self.counters = Counters()
        self.limits = Limits()
        self._closed = False
        self._timing = False
        self._events: list[Event] | None = None
        self._began = 0.0
        self._lock = RLock()
        self._tape: NumpyTape | None = None
        self._captures: WeakSet[Capture] = WeakSet()
        self._pool: Pool[Bytes] = Pool(
            "storage",
            numbers=count(),
            create=self._create,
            destroy=_drop,
            limits=self.limits,
            largest=1 << 62,  # no limit: NumPy raises MemoryError first
        )
        self.caches: Mapping[str, Counted] = {"storage": self._pool}
        register(self)

    def lease(self, nbytes: int, least: int = 0) -> Lease[Bytes]:
        """Return storage for `nbytes`, with undefined contents and room for `least`."""
        with self._locked():
            # 16 bytes at least, as on a device: an empty tensor has memory, too.
            block = self._pool.acquire(max(nbytes, least, 16))
            return Lease(block, nbytes, self._pool.returned)

    @property
    def device(self) -> GPUDevice:
        """Raise ContextError: there is no device."""
        raise ContextError(
            "device: the reference context has none, NumPy does the work."
        )

    def wrap(self, buffer: GPUBuffer, offset: int, nbytes: int) -> Lease[Bytes]:
        """Refuse: there is no device."""
        raise ContextError(
            f"wrap: the reference context has no device that could use {nbytes} bytes "
            f"at {offset} of {kind_of(buffer)}."
        )

    def hand_out(self, lease: Lease[Bytes]) -> GPUBuffer:
        """Refuse: there is no device."""
        raise ContextError(
            f"buffer: the reference context holds these {lease.nbytes} bytes in NumPy; "
            f"use numpy()."
        )

    def clear(self, lease: Lease[Bytes], offset: int, nbytes: int) -> None:
        """Fill a range of a lease with zeros."""
        with self._locked():
            self._check_untimed("a copy")
            self._copy_or_capture(partial(_clear, lease, offset, nbytes), lease)

    def upload(self, lease: Lease[Bytes], offset: int, data: Bytes) -> None:
        """Store the bytes `data` in a lease, from byte `offset` on."""
        with self._locked():
            self._check_not_captured("an upload")
            lease.block.memory[offset : offset + data.nbytes] = data
            lease.block.writes += 1
            self.counters.uploads += 1

    def download(
        self, ranges: Sequence[Range], into: Sequence[Bytes] = ()
    ) -> list[Bytes]:
        """Return copies of the ranges: in the arrays `into`, or in new ones."""
        with self._locked():
            self._check_untimed("a read")
            self._check_not_captured("a read")
            self.counters.readbacks += len(ranges)
            found = [
                lease.block.memory[offset : offset + nbytes]
                for lease, offset, nbytes in ranges
            ]
            return copied(found, into)

    async def download_async(self, ranges: Sequence[Range]) -> list[Bytes]:
        """Return copies of the ranges; there is nothing to wait for."""
        return self.download(ranges)

    def begin_download(self, wanted: Range) -> Download:
        """Copy a range at once, and return the finished copy."""
        (data,) = self.download([wanted])
        return FinishedCopy(data)

    def copy(self, source: AnyTensor, target: AnyTensor) -> None:
        """Copy the elements of a tensor to another of the same size."""
        with self._locked():
            self._check_untimed("a copy")
            self._copy_or_capture(partial(_copy, source, target), target.lease)

    def _copy_or_capture(self, copy: Callable[[], None], target: Lease[Bytes]) -> None:
        if self._tape is None:
            self._copy(copy, target)
        else:
            self._tape.parts.append(partial(self._copy, copy, target))

    def _copy(self, copy: Callable[[], None], target: Lease[Bytes]) -> None:
        copy()
        target.block.writes += 1
        self.counters.copies += 1

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> tuple[AnyTensor, ...]:
        """Check the arguments, run the reference and return the outputs."""
        with self._locked():
            check_arguments(kernel, ctx, tensors, out)
            plain = prepare(kernel, scalars)
            signature = resolve(kernel, tensors, kernel.guards(plain))
            check_out(kernel, signature, out)
            _check_aliases(kernel, [*tensors, *out])
            check_scalars(kernel, signature.values, plain)
            shapes = zip(kernel.outputs, signature.outputs, out, strict=True)
            outputs = tuple(
                self._make(ctx, spec.element, shape) if given is None else given
                for spec, shape, given in shapes
            )
            call = CheckedCall(kernel, signature, tensors, plain, outputs)
            if self._tape is None:
                self._run(call)
            else:
                self._tape.add(call, scalars)
            return outputs

    def _run(self, call: CheckedCall) -> None:
        """Run the reference, and store its results in the outputs."""
        start = perf_counter()
        results = _results(call)
        self._note(call.kernel, start)
        for tensor, array in zip(call.outputs, results, strict=True):
            if is_packed(tensor.element):
                _bytes(tensor)[...] = pack4(array)
            else:
                _array(tensor)[...] = array
        for tensor in call.written:
            tensor.lease.block.writes += 1
        self.counters.calls += 1

    def dispatch(self, call: Dispatch, grid: Size) -> None:
        """Refuse: a shader from `kerngen bind` has no NumPy reference."""
        del grid
        raise FeatureError(
            f"'{call.pipeline.SHADER.name}' is a shader without a NumPy reference: open "
            f"a context on an adapter."
        )

    def choices(self, kernel: Kernel, dims: Dims) -> tuple[Choice, ...]:
        """Return a choice for every stage, whose strategy is 'reference'."""
        del dims
        stages = stages_of(kernel.body)
        return tuple(Choice(stage, "reference", ()) for stage in stages)

    def submit(self) -> None:
        """Do nothing: every call has run already."""
        self._check_open()
        self._check_untimed("a submission")

    @contextmanager
    def batch(self) -> Generator[None, None, None]:
        """Let calls from other threads wait until the block ends."""
        with self._locked():
            yield

    @property
    def is_capturing(self) -> bool:
        """Whether the block of a capture is open; waits while another thread's is."""
        with self._lock:
            return self._tape is not None

    @contextmanager
    def capture(self) -> Generator[Capture, None, None]:
        """Record the calls of a block, to be replayed; the block runs nothing."""
        with self._locked():
            self._check_not_captured("another capture()")
            self._check_untimed("a capture()")
            tape = NumpyTape(self._replaying, self._run)
            capture = tape.capture = Capture(tape)
            self._captures.add(capture)
            with capture.block():
                self._tape = tape
                try:
                    yield capture
                finally:
                    self._tape = tape.capture = None

    @contextmanager
    def _replaying(self) -> Generator[None, None, None]:
        """Lock the context for a replay, which can't be a part of a capture itself."""
        with self._locked():
            self._check_not_captured("a replay()")
            yield

    def _check_not_captured(self, what: str) -> None:
        if self._tape is not None:
            raise within_capture(what)

    def invalidate_after_fork(self) -> None:
        """Do nothing: NumPy works in a forked process, too."""

    def forget_kernels(self, kernels: frozenset[Kernel]) -> None:
        """End the captures of kernels that were reloaded."""
        with self._lock:
            for capture in list(self._captures):
                for kernel in kernels.intersection(capture.recorded.kernels):
                    capture.end(partial(reloaded, kernel.name))

    @contextmanager
    def timed(self) -> Generator[Span, None, None]:
        """Time a block by the wall clock."""
        with self._locked():
            self._check_not_captured("a timed()")
            self._check_untimed("another timed()")
            if self._events is not None:
                raise within_profile("timed()")
            span, start = Span(), perf_counter()
            self._timing = True
            try:
                yield span
            finally:
                self._timing = False
                seconds = perf_counter() - start
                span.finish(lambda: seconds)

    @contextmanager
    def profile(self) -> Generator[Profile, None, None]:
        """Time every call in a block by the wall clock."""
        with self._locked():
            self._check_not_captured("a profile()")
            self._check_untimed("a profile()")
            if self._events is not None:
                raise within_profile("another profile()")
            profile, self._events = Profile(self.adapter_name), []
            self._began = perf_counter()
        try:
            yield profile
        finally:
            with self._lock:
                events, self._events = self._events, None
            profile.finish(tuple(events))

    def _note(self, kernel: Kernel, start: float) -> None:
        """Add a call's event to the open profile, if there is one."""
        if self._events is None:
            return
        call, seconds = len(self._events), perf_counter() - start
        start -= self._began
        self._events.append(
            Event(kernel.name, "", "reference", "", call, start, seconds)
        )

    def _check_untimed(self, what: str) -> None:
        if self._timing:
            raise within_timed(what)

    def trim(self) -> None:
        """Free the memory that no tensor uses."""
        with self._locked():
            self._pool.trim()

    def close(self) -> None:
        """Free everything."""
        with self._lock:
            self._closed = True
            for capture in list(self._captures):
                capture.end(closed)
            self._pool.trim()

    def _make(self, ctx: Context, element: type[Element], shape: Shape) -> AnyTensor:
        nbytes = element_bytes(element, shape)
        return Tensor(ctx, element, shape, self.lease(nbytes))

    def _create(self, nbytes: int) -> Bytes:
        self.counters.buffers_created += 1
        try:
            return np.zeros(nbytes, np.uint8)
        except MemoryError as error:
            raise OutOfMemoryError(
                f"NumPy has no memory for {nbytes} bytes."
            ) from error

    @contextmanager
    def _locked(self) -> Generator[None, None, None]:
        with self._lock:
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _drop(block: Allocation[Bytes]) -> None:
    """Do nothing to free a block: dropping its array frees it."""


def _clear(lease: Lease[Bytes], offset: int, nbytes: int) -> None:
    lease.block.memory[offset : offset + nbytes] = 0


def _copy(source: AnyTensor, target: AnyTensor) -> None:
    # The tensors may overlap: by way of a copy.
    _bytes(target)[...] = _bytes(source).copy()


def _array(tensor: AnyTensor) -> NDArray[Any]:
    """Return the elements of a tensor as an array over its memory."""
    return window(_bytes(tensor), tensor.element, tensor.shape)


def _bytes(tensor: AnyTensor) -> Bytes:
    """Return the memory of a tensor."""
    lease: Lease[Bytes] = tensor.lease
    return lease.block.memory[tensor.offset : tensor.offset + tensor.nbytes]


def _check_aliases(kernel: Kernel, given: Sequence[AnyTensor | None]) -> None:
    for (i, first), (j, second) in combinations(enumerate(given), 2):
        if first is None or second is None:
            continue
        only_read = kernel.tensors[i].access == kernel.tensors[j].access == "read"
        if first.lease.block is second.lease.block and not only_read:
            check_overlap(kernel, given, i, j)


def _results(call: CheckedCall) -> list[NDArray[Any]]:
    """Return the outputs as arrays of the kernel's shapes and elements."""
    # `mut` arrays are views of the tensors' memory: the reference changes them in place.
    kernel, signature = call.kernel, call.signature
    names = [spec.name for spec in kernel.scalars]
    named = dict(zip(names, call.scalars, strict=True))
    value: object = kernel.reference(*map(_array, call.tensors), **named)
    values: tuple[Any, ...] = (value,)
    if len(kernel.outputs) != 1:
        values = cast("tuple[Any, ...]", value or ())
    return [
        as_elements(item, spec.element).reshape(numpy_shape(shape, spec.element))
        for spec, shape, item in zip(
            kernel.outputs, signature.outputs, values, strict=True
        )
    ]
