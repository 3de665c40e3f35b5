"""The batch: queued operations, run together by one submission."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import final, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.batch.buffer import BatchBuffer, BufferValue, Floats
from kerngen.batch.checks import (
    as_rows,
    check_import,
    equal_shapes,
    flat_lengths,
    matrix_lengths,
    own_copy,
)
from kerngen.batch.execution import run
from kerngen.batch.operations import Operation
from kerngen.runtime import (
    Context,
    ContextError,
    DtypeError,
    ShapeError,
    StateError,
    f32,
)
from kerngen.runtime.calls.scalars import check_number
from kerngen.runtime.context import check_context
from kerngen.runtime.device.gpu import GPUBuffer
from kerngen.runtime.tensor import is_tensor
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.shapes import Shape


@final
class Batch:
    """Operations on float32 buffers that run together at `execute()`.

    Each call queues an operation and returns the handle of its result.  `execute()`
    runs what was queued since the last one, by one submission; then `read` returns
    results, and more can be queued.  Pipelines belong to the device: the next batch finds
    them in `ctx.caches`.  A batch belongs to its thread.

    Every method that takes handles raises DtypeError for another object, and ContextError
    for a handle of another batch, before anything is queued.
    """

    def __init__(self, ctx: Context) -> None:
        """Start with nothing queued."""
        self._ctx = check_context("Batch", ctx)
        self._values: WeakKeyDictionary[BatchBuffer, BufferValue] = WeakKeyDictionary()
        self._uploads: dict[BufferValue, NDArray[np.float32]] = {}
        self._operations: list[Operation] = []

    @property
    def ctx(self) -> Context:
        """The context that runs the batch."""
        return self._ctx

    @property
    def num_operations(self) -> int:
        """The number of queued operations, uploads and imports left out."""
        return len(self._operations)

    @property
    def num_buffers(self) -> int:
        """The number of buffers that a handle or a queued operation still uses."""
        used = {*self._values.values(), *self._uploads}
        for operation in self._operations:
            used.update(operation.inputs, operation.outputs)
        return len(used)

    def __repr__(self) -> str:
        """Return the context's name, and how much is queued."""
        return (
            f"Batch({self._ctx!r}: {self.num_operations} operations queued, "
            f"{self.num_buffers} buffers)"
        )

    # ---- from outside

    def upload(self, array: ArrayLike) -> BatchBuffer:
        """Queue an upload of an array's elements as they are now.

        They are converted to float32.  Raises DtypeError for what is not a real number,
        or too large.
        """
        data = own_copy(array)
        handle, value = self._new(data.shape)
        self._uploads[value] = data
        return handle

    def import_buffer(
        self,
        buffer: GPUBuffer | Floats,
        shape: int | Sequence[int] | None = None,
    ) -> BatchBuffer:
        """Use a buffer of the context's device, without a copy.

        It is a `wgpu.GPUBuffer` with the usages STORAGE and COPY_SRC, whose first elements
        are read as row-major `shape`; or a tensor of the context, all of whose elements
        are.  An integer is a shape of rank 1.  Of a tensor's shape one length may be -1;
        without a shape it keeps its own.  The batch only reads the buffer, as it is at
        `execute()`, and does not free it.  Raises ShapeError if the shape does not fit or
        a buffer's is missing, ContextError if it is of another device or context.
        """
        if is_tensor(buffer):
            check_import(self._ctx, buffer)
            tensor = buffer if shape is None else buffer.reshape(shape)
        elif shape is None:
            raise ShapeError(
                "import_buffer: a buffer does not know its shape; give it as the second "
                "argument."
            )
        else:
            tensor = self._ctx.wrap(buffer, shape, f32)
        return self._new(tensor.shape, tensor)[0]

    # ---- operations, element by element

    def relu(self, x: BatchBuffer) -> BatchBuffer:
        """Queue max(x, 0)."""
        return self._map("relu", x=x)

    def leaky_relu(self, x: BatchBuffer, slope: float = 0.01) -> BatchBuffer:
        """Queue x where x > 0, else slope x."""
        return self._map("leaky_relu", {"slope": slope}, x=x)

    def scale(self, x: BatchBuffer, alpha: float) -> BatchBuffer:
        """Queue alpha x."""
        return self._map("scale", {"alpha": alpha}, x=x)

    def add(self, a: BatchBuffer, b: BatchBuffer) -> BatchBuffer:
        """Queue a + b; raises ShapeError unless their shapes are the same."""
        return self._map("add", a=a, b=b)

    def sub(self, a: BatchBuffer, b: BatchBuffer) -> BatchBuffer:
        """Queue a - b; raises ShapeError unless their shapes are the same."""
        return self._map("sub", a=a, b=b)

    def mul(self, a: BatchBuffer, b: BatchBuffer) -> BatchBuffer:
        """Queue a b by element; raises ShapeError unless their shapes are the same."""
        return self._map("mul", a=a, b=b)

    def sigmoid(self, x: BatchBuffer) -> BatchBuffer:
        """Queue 1 / (1 + exp(-x))."""
        return self._map("sigmoid", x=x)

    def tanh(self, x: BatchBuffer) -> BatchBuffer:
        """Queue the hyperbolic tangent of x."""
        return self._map("tanh", x=x)

    def swish(self, x: BatchBuffer) -> BatchBuffer:
        """Queue x / (1 + exp(-x)), also called SiLU."""
        return self._map("swish", x=x)

    def gelu(self, x: BatchBuffer) -> BatchBuffer:
        """Queue x Phi(x), the exact form, by erf."""
        return self._map("gelu", x=x)

    # ---- operations on rows and matrices

    def dot(self, a: BatchBuffer, b: BatchBuffer) -> BatchBuffer:
        """Queue the sum of a b over all elements, a single number of shape ().

        Raises ShapeError unless their shapes are the same.
        """
        values = self._find("dot", a=a, b=b)
        size = math.prod(equal_shapes("dot", values))
        return self._queue("dot", values, ((size,), (size,)), ())

    def softmax(self, x: BatchBuffer) -> BatchBuffer:
        """Queue exp(x) over its sum, along the last axis."""
        values = self._find("softmax", x=x)
        rows = as_rows("softmax", values["x"])
        return self._queue("softmax", values, (rows,), values["x"].shape)

    @overload
    def matmul(self, a: BatchBuffer, b: BatchBuffer) -> BatchBuffer: ...
    @overload
    def matmul(
        self, a: BatchBuffer, b: BatchBuffer, m: int, k: int, n: int
    ) -> BatchBuffer: ...
    def matmul(
        self,
        a: BatchBuffer,
        b: BatchBuffer,
        m: int | None = None,
        k: int | None = None,
        n: int | None = None,
    ) -> BatchBuffer:
        """Queue the product of matrices [m, k] and [k, n], of shape (m, n).

        With m, k and n given, buffers of any shape are read as row-major matrices of
        these lengths, and the result is flat, too: m n elements.  Raises ShapeError if
        the lengths don't fit.
        """
        values = self._find("matmul", a=a, b=b)
        given = {"m": m, "k": k, "n": n}
        if all(length is None for length in given.values()):
            rows, inner, columns = matrix_lengths(values["a"], values["b"])
            shape: Shape = (rows, columns)
        else:
            rows, inner, columns = flat_lengths(values["a"], values["b"], given)
            shape = (rows * columns,)
        return self._queue("matmul", values, ((rows, inner), (inner, columns)), shape)

    # ---- running

    def execute(self) -> None:
        """Run all uploads, then all queued operations, in one submission.

        With nothing queued, nothing is done.  If this raises, no operation counts as run,
        though the device may have run some: all are still queued, and the next
        `execute()` tries again.
        """
        if not self._uploads and not self._operations:
            return
        try:
            run(self._ctx, self._uploads, self._operations)
        except Exception as error:
            error.add_note(
                f"No operation of the batch counts as run: all {self.num_operations} "
                f"are still queued."
            )
            raise
        self._uploads.clear()
        self._operations.clear()

    def read(self, buffer: BatchBuffer) -> NDArray[np.float32]:
        """Return the elements as a new array.

        Raises StateError if they are not computed before `execute()`.
        """
        return self._ready("read", buffer).numpy()

    async def read_async(self, buffer: BatchBuffer) -> NDArray[np.float32]:
        """Return the elements as a new array, without blocking the event loop.

        Raises StateError if they are not computed before `execute()`.
        """
        return await self._ready("read_async", buffer).read_async()

    # ---- inside

    def _new(
        self, shape: Shape, tensor: Floats | None = None
    ) -> tuple[BatchBuffer, BufferValue]:
        handle = BatchBuffer(self, shape)
        value = BufferValue(handle, tensor)
        self._values[handle] = value
        return handle, value

    def _find(self, operation: str, **buffers: BatchBuffer) -> dict[str, BufferValue]:
        """Return the values of an operation's arguments by their names."""
        return {
            name: self._value(operation, f"'{name}'", buffer)
            for name, buffer in buffers.items()
        }

    def _value(self, operation: str, name: str, buffer: object) -> BufferValue:
        if not isinstance(buffer, BatchBuffer):
            raise DtypeError(
                f"{operation}: {name} is {kind_of(buffer)}; expected a buffer of "
                f"the batch, as batch.upload(array) and the operations return them."
            )
        value = self._values.get(buffer)
        if value is None:
            raise ContextError(
                f"{operation}: {name} belongs to another batch. Read it there and upload "
                f"it here."
            )
        value.check(f"{operation}: {name}")
        return value

    def _map(
        self,
        operation: str,
        scalars: Mapping[str, float] | None = None,
        **buffers: BatchBuffer,
    ) -> BatchBuffer:
        """Queue an operation on each element of buffers of one shape."""
        values = self._find(operation, **buffers)
        shape = equal_shapes(operation, values)
        views = ((math.prod(shape),),) * len(values)
        return self._queue(operation, values, views, shape, scalars or {})

    def _queue(
        self,
        operation: str,
        values: Mapping[str, BufferValue],
        views: tuple[Shape, ...],
        shape: Shape,
        scalars: Mapping[str, float] | None = None,
    ) -> BatchBuffer:
        """Queue an operation on inputs reshaped to `views`; its result has `shape`."""
        numbers = {
            name: check_number(operation, name, number)
            for name, number in (scalars or {}).items()
        }
        handle, result = self._new(shape)
        self._operations.append(
            Operation(operation, tuple(values.values()), views, (result,), numbers)
        )
        return handle

    def _ready(self, operation: str, buffer: BatchBuffer) -> Floats:
        value = self._value(operation, "the argument", buffer)
        if value.tensor is None:
            raise StateError(
                f"{operation}: the buffer of shape {buffer.shape} is queued and not yet "
                f"computed; call execute() first."
            )
        return value.tensor
