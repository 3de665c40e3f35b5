"""Tensors: typed, shaped regions of a context's memory.

Element type and rank are part of a tensor's static type: `Tensor[f32, Literal[2]]`, or
`Matrix[f32]` for short.  Elements lie in row-major order without gaps.  Tensors are made
by a context (`ctx.matrix(...)`) and by kernels; views (`reshape`, `t[2:5]`) share memory
with their tensor and keep it alive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    final,
    overload,
)

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kerngen.runtime.calls.habits import ADVICE, missing_attribute, missing_operators
from kerngen.runtime.errors import ArgumentError, DtypeError, ShapeError, not_copied
from kerngen.runtime.late import LateRead
from kerngen.runtime.struct import Struct
from kerngen.runtime.values.arrays import (
    Values,
    array_dtype,
    as_bytes,
    as_value,
    check_out,
    from_memory,
)
from kerngen.runtime.values.elements import (
    E,
    Element,
    f16,
    f32,
    i4,
    i8,
    i32,
    u4,
    u8,
    u32,
)
from kerngen.runtime.values.packing import element_bytes, is_narrow, is_packed
from kerngen.runtime.values.shapes import Shape, resolve_shape, round_up

if TYPE_CHECKING:
    from kerngen.runtime.backend import Bytes
    from kerngen.runtime.context import Context
    from kerngen.runtime.device.gpu import GPUBuffer
    from kerngen.runtime.device.storage import Lease

R = TypeVar("R", bound=int)
S = TypeVar("S", bound=Struct)
N = TypeVar("N", f32, f16, i32, u32, u8, i8, u4, i4)

STORAGE_ALIGNMENT = 16
"""The unit of owned storage in bytes: its size is a multiple of it, and never 0."""


def padded_size(nbytes: int, least: int = 0) -> int:
    """Return the bytes of the storage for a tensor of `nbytes`: padded, `least` at least."""
    return round_up(max(nbytes, least, STORAGE_ALIGNMENT), STORAGE_ALIGNMENT)


@lru_cache(maxsize=4096)
def _sizes(signature: tuple[type[Element], Shape]) -> tuple[int, int]:
    """Return the bytes of a tensor's elements, and of the storage that it would own.

    Cached: every call makes outputs and temporaries, of few shapes.
    """
    element, shape = signature
    nbytes = element_bytes(element, shape)
    return nbytes, padded_size(nbytes, element.DTYPE.itemsize)


@final
class Tensor(Generic[E, R]):
    """A tensor of elements `E` and rank `R`; contexts make them.

    These attributes are the runtime's:

    - `lease`, `offset`: the memory, and the byte of it at which the tensor starts
    - `binding`: what a bind group binds: buffer number, offset, bytes; 0 bytes if the
      adapter can't bind the tensor in place
    - `signature`: the key by which call plans are found: element type and shape
    """

    __slots__ = (
        "__weakref__",
        "binding",
        "ctx",
        "element",
        "lease",
        "nbytes",
        "offset",
        "shape",
        "signature",
    )

    ctx: Context
    element: type[E]
    shape: Shape
    lease: Lease[Any]
    offset: int
    nbytes: int
    binding: tuple[int, int, int]
    signature: tuple[type[E], Shape]

    def __init__(
        self,
        ctx: Context,
        element: type[E],
        shape: Shape,
        lease: Lease[Any],
        offset: int = 0,
    ) -> None:
        """Describe the elements at `offset` bytes of a lease."""
        self.ctx = ctx
        self.element = element
        self.shape = shape
        self.signature = (element, shape)
        self.lease = lease
        self.offset = offset
        nbytes, bound = _sizes(self.signature)
        self.nbytes = nbytes
        if not lease.padded or nbytes != lease.nbytes:
            bound = round_up(nbytes, 4)
            # A view: the adapter must be able to bind its offset.  And if narrow integers
            # end in the middle of a word, a kernel that writes the word would write the
            # elements of another tensor.
            if offset % ctx.alignment or (bound != nbytes and is_narrow(element)):
                bound = 0
        self.binding = (lease.block.uid, offset, bound)

    @property
    def direct(self) -> bool:
        """Whether the adapter can bind the tensor where it lies; for the runtime alone."""
        return self.binding[2] > 0

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of `numpy()`: float32 for f32 and vec3f, `DTYPE` for a struct."""
        return array_dtype(self.element)

    def __len__(self) -> int:
        """Return the length of the first axis, as NumPy does."""
        if not self.shape:
            raise DtypeError("A tensor of rank 0 has no length: its size is 1.")
        return self.shape[0]

    @property
    def buffer(self) -> GPUBuffer:
        """The `wgpu.GPUBuffer` that holds the tensor, `offset` bytes from the buffer's start.

        What was recorded before is submitted, so that the caller's own submissions come
        after it.  From now on the buffer is the caller's too: it never returns to the
        context's pool.  Work recorded later is seen only after a `ctx.submit()`.
        """
        return self.ctx.backend.hand_out(self.lease)

    @property
    def writes(self) -> int:
        """How many calls of its context have written the tensor's buffer."""
        return self.lease.block.writes

    @property
    def losses(self) -> int:
        """How many recordings that write the tensor's buffer were lost by errors."""
        return self.lease.block.losses

    def numpy(self, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Submit what is recorded and return the elements as a new array.

        With `out`, a contiguous array of this shape and `dtype`, they are written to
        that: a loop that reads the same tensor at each step allocates nothing then.
        """
        if out is not None:
            return self._read_into(out)
        (data,) = self.ctx.backend.download((self.place,))
        self.ctx.check_watches()
        return self.as_array(data)

    def _read_into(self, out: NDArray[Any]) -> NDArray[Any]:
        check_out(out, self.element, self.shape)
        if out.nbytes != self.nbytes:  # a vec3f has a gap in memory, and none in NumPy
            out[...] = self.numpy()
            return out
        if out.nbytes:
            self.ctx.backend.download((self.place,), (as_bytes(out),))
        self.ctx.check_watches()
        return out

    def begin_read(self) -> LateRead:
        """Submit recorded work, begin to read, and return; `numpy()` of the result waits.

        The elements are those of now, whatever is recorded in the meantime.
        """

        def as_array(data: Bytes) -> NDArray[Any]:
            self.ctx.check_watches()
            return self.as_array(data)

        return LateRead(self.ctx.backend.begin_download(self.place), as_array)

    async def read_async(self) -> NDArray[Any]:
        """Submit what is recorded and return the elements, without blocking."""
        (data,) = await self.ctx.backend.download_async((self.place,))
        self.ctx.check_watches()
        return self.as_array(data)

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        """Read the elements, for `np.asarray(t)` and functions that take array-likes."""
        if copy is False:
            raise ValueError("A tensor is in device memory: reading it must copy.")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    @overload
    def item(self: Tensor[S, R]) -> S: ...
    @overload
    def item(self: Tensor[N, R]) -> float | int: ...
    @overload
    def item(self) -> Any: ...
    def item(self) -> Any:
        """Return the only element: a number, nested tuples, or a struct."""
        if self.size != 1:
            raise ShapeError(f"item() needs a single element, not shape {self.shape}.")
        return as_value(self.numpy(), self.element)

    @overload
    def reshape(self, shape: int | tuple[int], /) -> Tensor[E, Literal[1]]: ...
    @overload
    def reshape(self, shape: tuple[()], /) -> Tensor[E, Literal[0]]: ...
    @overload
    def reshape(self, shape: tuple[int, int], /) -> Tensor[E, Literal[2]]: ...
    @overload
    def reshape(self, shape: tuple[int, int, int], /) -> Tensor[E, Literal[3]]: ...
    @overload
    def reshape(self, shape: tuple[int, int, int, int], /) -> Tensor[E, Literal[4]]: ...
    @overload
    def reshape(self, m: int, n: int, /) -> Tensor[E, Literal[2]]: ...
    @overload
    def reshape(self, *shape: int | Sequence[int]) -> Tensor[E, Any]: ...
    def reshape(self, *shape: int | Sequence[int]) -> Tensor[E, Any]:
        """Return a view with another shape, given as in NumPy; one length may be -1."""
        # Several lengths are one shape; what is none, `resolve_shape` refuses.
        wanted = shape[0] if len(shape) == 1 else cast("tuple[int, ...]", shape)
        lengths = resolve_shape(wanted, self.size)
        return Tensor(self.ctx, self.element, lengths, self.lease, self.offset)

    def rows(self, start: int, stop: int) -> Tensor[E, R]:
        """Return a view of the rows from `start` up to `stop` (of the first axis)."""
        if not self.shape:
            raise ShapeError("A tensor of rank 0 has no rows.")
        count = self.shape[0]
        if not 0 <= start <= stop <= count:
            raise ShapeError(f"Rows {start}:{stop} are not within 0:{count}.")
        shape = (stop - start, *self.shape[1:])
        before = (start, *self.shape[1:])
        for row in (start, stop) if is_packed(self.element) else ():
            if row < count and row * math.prod(self.shape[1:]) % 2:
                raise ShapeError(
                    f"Rows {start}:{stop} of {self!r} begin or end in the middle of a "
                    f"byte: two elements of {self.element.__name__} share one."
                )
        offset = self.offset + element_bytes(self.element, before)
        return Tensor(self.ctx, self.element, shape, self.lease, offset)

    def __getitem__(self, rows: slice) -> Tensor[E, R]:
        """Return a view of a range of rows, as in NumPy; steps other than 1 are not."""
        if not _is_slice(rows) or not self.shape:
            raise ShapeError(
                f"Only a range of rows can be taken, t[2:5], not t[{rows!r}] of a "
                f"tensor of rank {self.ndim}; its elements are read by t.numpy()."
            )
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise ShapeError(f"Row ranges have step 1, not {step}.")
        return self.rows(start, max(start, stop))

    def copy_from(self, source: Tensor[E, R] | Values) -> None:
        """Overwrite the elements with those of a tensor or an array of the same shape.

        A tensor must have the same element type; an array is converted.
        """
        self.ctx.copy(source, self)

    def clear(self) -> None:
        """Overwrite the elements with zeros."""
        self.ctx.backend.clear(self.lease, self.offset, self.nbytes)

    def __bool__(self) -> NoReturn:
        """Refuse: it is unclear if that asks for emptiness, zeros or None."""
        raise ArgumentError(
            "A tensor is neither true nor false. Test 'tensor is not None', or its "
            "elements: 'tensor.numpy().any()', 'tensor.item()', 'tensor.size'."
        )

    def __eq__(self, other: object) -> bool:
        """Refuse to compare with arrays and tensors; False for anything else."""
        if not isinstance(other, _COMPARABLE):
            return NotImplemented
        raise ArgumentError(
            "Tensors are not compared by '==' and '!='. Compare elements after reading "
            "them: np.array_equal(a.numpy(), b.numpy()), or t.numpy() == 0. 'a is b' is "
            "whether two names have the same tensor."
        )

    __hash__ = object.__hash__

    if not TYPE_CHECKING:
        # Type checkers would take this for a promise of every attribute.
        __getattr__ = missing_attribute(ADVICE)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, which would lose the device."""
        raise not_copied("A tensor", "Send 'tensor.numpy()', and upload it there")

    def __repr__(self) -> str:
        """Return element type, shape and context, but no elements."""
        lengths = ", ".join(map(str, self.shape))
        return f"Tensor({self.element.__name__}[{lengths}], {self.ctx.kind})"

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction]  # IPython's
        """Show type, context and values in a notebook; large tensors are shortened."""
        # Imported here because programs that show nothing need none of it.
        from kerngen.runtime.notebook.tensor_html import tensor_html  # noqa: PLC0415

        return tensor_html(self)

    @property
    def place(self) -> tuple[Lease[Any], int, int]:
        """The lease, the tensor's offset in it and size in bytes; for the runtime alone."""
        return self.lease, self.offset, self.nbytes

    def as_array(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the bytes `data` as an array of such elements; for the runtime alone."""
        return from_memory(data, self.element, self.shape)


for _name, _refuse in missing_operators().items():
    setattr(Tensor, _name, _refuse)

_COMPARABLE = (Tensor, np.ndarray, np.generic, int, float, complex, list, tuple)
"""What NumPy compares arrays with, element by element."""


def is_tensor(value: object) -> TypeGuard[Tensor[Any, Any]]:
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


def _is_slice(rows: object) -> bool:
    return isinstance(rows, slice)


Scalar: TypeAlias = Tensor[E, Literal[0]]
Vector: TypeAlias = Tensor[E, Literal[1]]
Matrix: TypeAlias = Tensor[E, Literal[2]]
Tensor3: TypeAlias = Tensor[E, Literal[3]]
Tensor4: TypeAlias = Tensor[E, Literal[4]]
