"""The context: makes tensors, runs kernels, and decides when work is submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    Protocol,
    final,
    overload,
)
from weakref import ref

from numpy.typing import NDArray

from kerngen.runtime.calling import explained, wrong_shape, wrong_upload
from kerngen.runtime.calls.belonging import of_another_context
from kerngen.runtime.calls.choices import (
    Choice,
    KernelFunction,
    all_dims,
    kernel_of,
)
from kerngen.runtime.calls.habits import CONTEXT_ADVICE, missing_attribute
from kerngen.runtime.errors import ContextError, DtypeError, ShapeError, not_copied
from kerngen.runtime.tensor import (
    Matrix,
    R,
    Scalar,
    Tensor,
    Tensor3,
    Tensor4,
    Vector,
    is_tensor,
)
from kerngen.runtime.values.arrays import (
    Values,
    as_bytes,
    guess_element,
    numpy_shape,
    to_memory,
)
from kerngen.runtime.values.elements import E, Element, NumpyType, as_element
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.packing import element_bytes
from kerngen.runtime.values.shapes import normalise_shape

if TYPE_CHECKING:
    from kerngen.runtime.backend import Backend, Bytes, Kind
    from kerngen.runtime.caches import Counted
    from kerngen.runtime.calls.capture import Capture
    from kerngen.runtime.counters import Counters
    from kerngen.runtime.device.gpu import GPUBuffer, GPUDevice
    from kerngen.runtime.device.limits import Limits
    from kerngen.runtime.device.storage import Lease
    from kerngen.runtime.device.timing import Span
    from kerngen.runtime.profile import Profile


class ReadCheck(Protocol):
    """A check that runs after each read, to raise errors that kernels found on the device."""

    def check(self) -> None:
        """Raise if the device has found an error; must be cheap where it can't have."""
        ...


@final
class Context:
    """Everything that lives on one device; `kerngen.runtime.open` makes one.

    Kernels, uploads and copies take effect in the order of the calls, as if each ran at
    once; really they are recorded and submitted together, at a read, at `submit()`, at
    the end of a `batch()`, and before the device runs out of work.  A context may be used
    from several threads; while one of them is inside `batch()`, calls from the others wait.
    """

    def __init__(self, backend: Backend) -> None:
        """Wrap a backend; users call `kerngen.runtime.open` instead."""
        self.backend = backend
        self.alignment = backend.alignment
        self._watches: list[ref[ReadCheck]] = []

    # ---- what it is

    @property
    def kind(self) -> Kind:
        """'gpu', 'software' or 'reference' (NumPy)."""
        return self.backend.kind

    @property
    def adapter_name(self) -> str:
        """The adapter, in its driver's words."""
        return self.backend.adapter_name

    @property
    def device(self) -> GPUDevice:
        """The `wgpu.GPUDevice`, to make buffers on or to open other contexts with.

        One that the context opened itself is destroyed when the context closes.  Raises
        ContextError where there is none: on the reference, and once closed.
        """
        return self.backend.device

    @property
    def max_tensor_bytes(self) -> int:
        """The size of the largest tensor that a kernel can be given, in bytes."""
        return self.backend.max_tensor_bytes

    @property
    def unchecked(self) -> bool:
        """Whether shaders run without runtime checks, as `open(unchecked=True)` asks."""
        return self.backend.unchecked

    @property
    def counters(self) -> Counters:
        """Counts of what the context has done so far."""
        return self.backend.counters

    @property
    def caches(self) -> Mapping[str, Counted]:
        """The caches and pools by name, each with `hits` and `misses`."""
        return self.backend.caches

    @property
    def limits(self) -> Limits:
        """When work is submitted unasked, and how much free memory is kept; settable."""
        return self.backend.limits

    def choices(self, function: KernelFunction, /, **dims: int) -> tuple[Choice, ...]:
        """Return the schedules that a call of a function with these dims would run.

        `dims` are those of its tensor arguments, and the integer scalars that decide
        lengths or schedules.  Nothing is compiled or run.  Raises DtypeError where the
        function is not a kernel's, ShapeError where a dim is missing or unknown, and
        LimitError where no schedule fits the adapter.
        """
        kernel = kernel_of(function)
        return self.backend.choices(kernel, all_dims(kernel, dims))

    if not TYPE_CHECKING:
        # Type checkers would take this for a promise of every attribute.
        __getattr__ = missing_attribute(CONTEXT_ADVICE)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, which would lose the device."""
        raise not_copied("A context", "Open one in each process")

    def __repr__(self) -> str:
        """Return the adapter's kind and name."""
        return f"Context({self.kind}: {self.adapter_name})"

    # ---- tensors from arrays

    @overload
    def scalar(self, value: Values, element: type[E]) -> Scalar[E]: ...
    @overload
    def scalar(self, value: Values, element: NumpyType) -> Scalar[Any]: ...
    @explained(wrong_upload)
    def scalar(self, value: Values, element: type[E] | NumpyType) -> Scalar[E]:
        """Return a tensor of rank 0."""
        return self._from_array(value, element, 0, "scalar")

    @overload
    def vector(self, array: Values, element: type[E]) -> Vector[E]: ...
    @overload
    def vector(self, array: Values, element: NumpyType) -> Vector[Any]: ...
    @explained(wrong_upload)
    def vector(self, array: Values, element: type[E] | NumpyType) -> Vector[E]:
        """Return a copy of an array of rank 1, converted to `element`."""
        return self._from_array(array, element, 1, "vector")

    @overload
    def matrix(self, array: Values, element: type[E]) -> Matrix[E]: ...
    @overload
    def matrix(self, array: Values, element: NumpyType) -> Matrix[Any]: ...
    @explained(wrong_upload)
    def matrix(self, array: Values, element: type[E] | NumpyType) -> Matrix[E]:
        """Return a copy of an array of rank 2, converted to `element`."""
        return self._from_array(array, element, 2, "matrix")

    @overload
    def tensor3(self, array: Values, element: type[E]) -> Tensor3[E]: ...
    @overload
    def tensor3(self, array: Values, element: NumpyType) -> Tensor3[Any]: ...
    @explained(wrong_upload)
    def tensor3(
        self, array: Values, element: type[Element] | NumpyType
    ) -> Tensor3[Any]:
        """Return a copy of an array of rank 3, converted to `element`."""
        return self._from_array(array, element, 3, "tensor3")

    @overload
    def tensor4(self, array: Values, element: type[E]) -> Tensor4[E]: ...
    @overload
    def tensor4(self, array: Values, element: NumpyType) -> Tensor4[Any]: ...
    @explained(wrong_upload)
    def tensor4(
        self, array: Values, element: type[Element] | NumpyType
    ) -> Tensor4[Any]:
        """Return a copy of an array of rank 4, converted to `element`."""
        return self._from_array(array, element, 4, "tensor4")

    @overload
    def tensor(self, array: Values) -> Tensor[Any, Any]: ...
    @overload
    def tensor(self, array: Values, element: type[E]) -> Tensor[E, Any]: ...
    @overload
    def tensor(self, array: Values, element: NumpyType) -> Tensor[Any, Any]: ...
    @explained(wrong_upload)
    def tensor(
        self, array: Values, element: type[E] | NumpyType | None = None
    ) -> Tensor[E, Any]:
        """Return a copy of an array of any rank; calls check the rank, not type checkers.

        Without `element` the array must already be float32, float16, int32 or uint32;
        vectors, matrices and structs are always asked for.
        """
        if element is None:
            guessed: type[Any] = guess_element(array)
            return self._from_array(array, guessed, None, "tensor")
        return self._from_array(array, element, None, "tensor")

    def _from_array(
        self,
        array: Values,
        wanted: type[E] | NumpyType,
        rank: int | None,
        maker: str,
    ) -> Tensor[E, Any]:
        element = as_element(wanted)
        data, shape = to_memory(array, element)
        if rank is not None and len(shape) != rank:
            inner = numpy_shape((), element)
            behind = f", followed by the {inner} of {element.__name__}"
            raise ShapeError(
                f"ctx.{maker}(...) takes an array of rank {rank}{behind * bool(inner)}, "
                f"got shape {(*shape, *inner)} (rank {len(shape)})."
            )
        lease = self._lease(data.nbytes, element)
        if data.nbytes:
            self.backend.upload(lease, 0, as_bytes(data))
        return Tensor(self, element, shape, lease)

    def _lease(self, nbytes: int, element: type[Element]) -> Lease[Any]:
        """Return storage that can be bound: for one element at least."""
        return self.backend.lease(nbytes, element.DTYPE.itemsize)

    # ---- tensors without contents

    @overload
    def empty(
        self, shape: int | tuple[int], element: type[E]
    ) -> Tensor[E, Literal[1]]: ...
    @overload
    def empty(self, shape: tuple[()], element: type[E]) -> Tensor[E, Literal[0]]: ...
    @overload
    def empty(
        self, shape: tuple[int, int], element: type[E]
    ) -> Tensor[E, Literal[2]]: ...
    @overload
    def empty(
        self, shape: tuple[int, int, int], element: type[E]
    ) -> Tensor[E, Literal[3]]: ...
    @overload
    def empty(
        self, shape: tuple[int, int, int, int], element: type[E]
    ) -> Tensor[E, Literal[4]]: ...
    @overload
    def empty(self, shape: Sequence[int], element: type[E]) -> Tensor[E, Any]: ...
    @overload
    def empty(
        self, shape: int | Sequence[int], element: NumpyType
    ) -> Tensor[Any, Any]: ...
    @explained(wrong_shape)
    def empty(
        self, shape: int | Sequence[int], element: type[E] | NumpyType
    ) -> Tensor[E, Any]:
        """Return a tensor with undefined contents, for kernels to write as their `out=`."""
        chosen, lengths = as_element(element), normalise_shape(shape)
        lease = self._lease(element_bytes(chosen, lengths), chosen)
        return Tensor(self, chosen, lengths, lease)

    @overload
    def zeros(
        self, shape: int | tuple[int], element: type[E]
    ) -> Tensor[E, Literal[1]]: ...
    @overload
    def zeros(self, shape: tuple[()], element: type[E]) -> Tensor[E, Literal[0]]: ...
    @overload
    def zeros(
        self, shape: tuple[int, int], element: type[E]
    ) -> Tensor[E, Literal[2]]: ...
    @overload
    def zeros(
        self, shape: tuple[int, int, int], element: type[E]
    ) -> Tensor[E, Literal[3]]: ...
    @overload
    def zeros(
        self, shape: tuple[int, int, int, int], element: type[E]
    ) -> Tensor[E, Literal[4]]: ...
    @overload
    def zeros(self, shape: Sequence[int], element: type[E]) -> Tensor[E, Any]: ...
    @overload
    def zeros(
        self, shape: int | Sequence[int], element: NumpyType
    ) -> Tensor[Any, Any]: ...
    @explained(wrong_shape)
    def zeros(
        self, shape: int | Sequence[int], element: type[E] | NumpyType
    ) -> Tensor[E, Any]:
        """Return a tensor of zeros."""
        tensor = self.empty(normalise_shape(shape), as_element(element))
        self.backend.clear(tensor.lease, 0, tensor.nbytes)
        return tensor

    @overload
    def wrap(
        self,
        buffer: GPUBuffer,
        shape: int | Sequence[int],
        element: type[E],
        offset: int = 0,
    ) -> Tensor[E, Any]: ...
    @overload
    def wrap(
        self,
        buffer: GPUBuffer,
        shape: int | Sequence[int],
        element: NumpyType,
        offset: int = 0,
    ) -> Tensor[Any, Any]: ...
    def wrap(
        self,
        buffer: GPUBuffer,
        shape: int | Sequence[int],
        element: type[E] | NumpyType,
        offset: int = 0,
    ) -> Tensor[E, Any]:
        """Return a tensor over the caller's own `wgpu.GPUBuffer`, without a copy.

        `offset` is in bytes.  The buffer must belong to the context's device and have the usage
        STORAGE, and COPY_SRC if it is to be read, COPY_DST if it is to be written by copies.
        """
        chosen, lengths = as_element(element), normalise_shape(shape)
        itemsize = chosen.DTYPE.itemsize
        if offset < 0 or offset % itemsize:
            raise ShapeError(
                f"wrap: offset {offset} is not a multiple of the {itemsize} bytes of "
                f"{chosen.__name__}."
            )
        lease = self.backend.wrap(buffer, offset, element_bytes(chosen, lengths))
        return Tensor(self, chosen, lengths, lease, offset)

    # ---- reading

    def read(self, *tensors: Tensor[Any, Any]) -> tuple[NDArray[Any], ...]:
        """Return the elements of several tensors as new arrays, waiting once for all."""
        self._check_read(tensors)
        copies = self.backend.download([tensor.place for tensor in tensors])
        return self._arrays(tensors, copies)

    async def read_async(self, *tensors: Tensor[Any, Any]) -> tuple[NDArray[Any], ...]:
        """Return the elements of several tensors as new arrays, without blocking."""
        self._check_read(tensors)
        places = [tensor.place for tensor in tensors]
        copies = await self.backend.download_async(places)
        return self._arrays(tensors, copies)

    def _check_read(self, tensors: Sequence[object]) -> None:
        for tensor in tensors:
            if not is_tensor(tensor):
                raise DtypeError(f"read: expected tensors, got {kind_of(tensor)}.")
            if tensor.ctx is not self:
                raise of_another_context("read: a tensor", tensor.ctx, self)

    def _arrays(
        self, tensors: Sequence[Tensor[Any, Any]], copies: Sequence[Bytes]
    ) -> tuple[NDArray[Any], ...]:
        self.check_watches()
        pairs = zip(tensors, copies, strict=True)
        return tuple(tensor.as_array(data) for tensor, data in pairs)

    # ---- errors that are found on the device

    def watch(self, watch: ReadCheck) -> None:
        """Call `watch.check()` after every read, as long as `watch` exists.

        So an error that is found on the device gets to its user at the next point that waits
        anyway.  A check may read tensors itself.
        """
        # Weak references: a watch whose owner is gone is dropped here.
        alive = [each for each in self._watches if each() is not None]
        self._watches = [*alive, ref(watch)]

    def check_watches(self) -> None:
        """Call the `check()` of all watches, as every read does."""
        for each in self._watches:
            watch = each()
            if watch is not None:
                watch.check()

    # ---- copies and submission

    def copy(self, source: Tensor[E, R] | Values, target: Tensor[E, R]) -> None:
        """Overwrite `target` with a tensor or an array of the same shape."""
        self._check_owned(target)
        if is_tensor(source):
            self._copy_tensor(source, target)
            return
        data, shape = to_memory(source, target.element)
        _check_same_shape(shape, target.shape)
        if data.nbytes:
            self.backend.upload(target.lease, target.offset, as_bytes(data))

    def _copy_tensor(self, source: Tensor[Any, Any], target: Tensor[Any, Any]) -> None:
        self._check_owned(source)
        _check_same_shape(source.shape, target.shape)
        if source.element is not target.element:
            raise DtypeError(
                f"copy_from: expected {target.element.__name__} elements, got "
                f"{source.element.__name__}."
            )
        self.backend.copy(source, target)

    def submit(self) -> None:
        """Submit what is recorded; does not wait for it."""
        self.backend.submit()

    def batch(self) -> AbstractContextManager[None]:
        """Record a block of calls and submit them together at its end.

        Inside, only reads, `submit()`, the begin and end of `timed()` and the end of
        `profile()` submit early.  The batch belongs to its thread: calls from other threads
        wait until it ends.
        """
        return self.backend.batch()

    def capture(self) -> AbstractContextManager[Capture]:
        """Record the calls of a block without running them; `replay()` runs them.

        `with ctx.capture() as step:` begins the block, `step.replay()` runs its calls.
        A replay takes a fraction of the calls' time in Python.  It reads and writes the
        same tensors each time, so what changes between replays has to be in tensors, or
        in numbers that `step.scalar` declares.  The block may call kernels, make tensors
        without contents or of zeros, and copy and clear them on the device.  Reads,
        uploads, `timed()`, `profile()`, replays and another `capture()` in it raise
        StateError.  Like a batch, the block belongs to its thread.
        """
        return self.backend.capture()

    @property
    def is_capturing(self) -> bool:
        """Whether a block of `capture()` is open, so that calls don't run."""
        return self.backend.is_capturing

    def timed(self) -> AbstractContextManager[Span]:
        """Time the work of a block: `span.seconds`, on the device's own clock.

        What was recorded before is submitted first; the block's work is one compute pass
        between two timestamps, submitted at its end.  So a block may hold nothing that
        needs more: reads, copies on the device, `submit()`, and `timed()` and `profile()`
        within raise StateError.  A `batch()` within changes nothing.  Like a batch, the block
        belongs to its thread.  The reference is timed by the wall clock.  Raises FeatureError
        where the device has no timestamps.
        """
        return self.backend.timed()

    def profile(self) -> AbstractContextManager[Profile]:
        """Time each dispatch of a block: `profile.events`, `table()` and `save(path)`.

        Anything may happen in the block, in any thread; its end submits and waits.  Each
        dispatch has a pass of its own, between two timestamps, so that short ones take
        longer than back to back: `timed()` gives their time together.  Copies are not
        timed.  A context that is closed within the block keeps its events so far.  On the
        NumPy reference, each call is timed by the wall clock.  Raises FeatureError where
        the device has no timestamps, StateError within `timed()` or another profile.
        """
        return self.backend.profile()

    def trim(self) -> None:
        """Free the memory that no tensor uses."""
        self.backend.trim()

    def close(self) -> None:
        """Submit what is recorded, then free everything; later calls raise."""
        self.backend.close()

    def __enter__(self) -> Context:
        """Return the context itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the context."""
        self.close()

    def _check_owned(self, tensor: Tensor[Any, Any]) -> None:
        if tensor.ctx is not self:
            raise of_another_context("copy_from: a tensor", tensor.ctx, self)


def _check_same_shape(source: Sequence[int], target: Sequence[int]) -> None:
    if tuple(source) != tuple(target):
        raise ShapeError(f"copy_from: expected shape {target}, got {source}.")


def check_context(owner: str, value: object) -> Context:
    """Return `value` if it is a context, or raise; `owner` is named in the error."""
    if isinstance(value, Context):
        return value
    raise ContextError(
        f"{owner}: expected a context, as kerngen.runtime.open() returns it, got "
        f"{kind_of(value)}."
    )
