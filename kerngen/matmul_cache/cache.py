"""The cache of weights on the device, and products with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.matmul_cache.layouts import Layout, check_layout
from kerngen.matmul_cache.plan import MatmulPlan, make_plan
from kerngen.matmul_cache.products import multiply
from kerngen.matmul_cache.weights import (
    Weight,
    check_name,
    check_string,
    named,
    naming,
    upload,
)
from kerngen.runtime import (
    Context,
    DtypeError,
    LimitError,
    ShapeError,
    Tensor,
    UnknownNameError,
    Vector,
    f32,
)
from kerngen.runtime.caches import Cache
from kerngen.runtime.calls.belonging import of_another_context
from kerngen.runtime.calls.unknown import unknown_name
from kerngen.runtime.context import check_context
from kerngen.runtime.tensor import R, is_tensor
from kerngen.runtime.values.foreign import as_array
from kerngen.runtime.values.shapes import Shape, normalise_shape

Numbers: TypeAlias = NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]
"""The arrays that `matmul` takes for x; not ArrayLike, which includes tensors."""

_PLANS = 4096
"""The number of plans that a cache keeps."""

_Key: TypeAlias = tuple[int, int, int, Layout]


@final
@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The bytes that a cache uses on the device, by purpose.

    `inputs` and `outputs` are the buffers that products of NumPy arrays go through.
    """

    weights: int
    inputs: int
    outputs: int

    @property
    def total(self) -> int:
        """The sum of all."""
        return self.weights + self.inputs + self.outputs


@final
class MatmulCache:
    """Named weights that stay on the device, and products with them.

    A weight is uploaded once and never read back, whatever the number of rows that it is
    multiplied by.  One that the adapter cannot bind as a whole is stored in parts, whose
    results are joined on the device.

    A cache may be used from several threads; a product of NumPy arrays keeps the others
    waiting.
    """

    def __init__(self, ctx: Context) -> None:
        """Start without weights; raises ContextError if `ctx` is no context."""
        self._ctx = check_context("MatmulCache", ctx)
        self._weights: dict[str, Weight] = {}
        self._inputs = GrowingBuffer(ctx)
        self._outputs = GrowingBuffer(ctx)
        self._plans: Cache[_Key, MatmulPlan] = Cache("matmul plans", _PLANS)
        self._lock = Lock()
        """Guards the plans; nothing that takes the context's lock is called under it."""

    # ---- weights

    def upload_weight(self, name: str, array: ArrayLike, layout: Layout = "nk") -> None:
        """Upload a matrix under a name, converted to float32.

        Layout 'nk' is one row per output, as PyTorch's Linear stores weights; 'kn' is one
        column per output.  A weight that has the name already is replaced, once the new
        one is uploaded: where that raises, the old one stays.

        Raises:
            ArgumentError: If the name is blank, or the layout is another word.
            ShapeError: If the array is not of rank 2.
            DtypeError: If it holds no numbers, or some beyond float32's range.
            LimitError: If the adapter cannot bind a single row.
        """
        check_name(name)
        self._weights[name] = upload(self._ctx, name, array, check_layout(layout))

    def remove_weight(self, name: str) -> None:
        """Remove a weight; its memory goes back to the context's pool.

        Raises:
            ArgumentError: If the name is no string.
            UnknownNameError: If there is none of that name.
        """
        check_string(name)
        if self._weights.pop(name, None) is None:
            raise self._unknown(name)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The names of the weights, in the order of their first upload."""
        return tuple(self._held())

    @property
    def weight_count(self) -> int:
        """The number of weights."""
        return len(self._weights)

    @property
    def weight_bytes(self) -> int:
        """The bytes of all weights, 4 to an element."""
        return sum(weight.nbytes for weight in self._held().values())

    # ---- products

    @overload
    def matmul(self, name: str, x: Tensor[f32, R]) -> Tensor[f32, R]: ...
    @overload
    def matmul(self, name: str, x: Numbers) -> NDArray[np.float32]: ...
    def matmul(
        self, name: str, x: Tensor[f32, Any] | Numbers
    ) -> Tensor[f32, Any] | NDArray[np.float32]:
        """Return x times a weight: [n] for x of shape [k], [m, n] for [m, k].

        A tensor gives a tensor; the product is recorded, and nothing is read back.  An
        array, converted to float32, gives an array: it is uploaded to a buffer that calls
        share, and the result is read from another one.

        Raises:
            ArgumentError: If the name is no string.
            UnknownNameError: If no weight has the name.
            ShapeError: If x is not of rank 1 or 2, or has another k than the weight.
            DtypeError: If x does not hold numbers, or f32 elements if it is a tensor.
            ContextError: If x is a tensor of another context.
            LimitError: If the adapter cannot bind x or the result.
        """
        weight = self._find(name)
        if is_tensor(x):
            return self._multiply_tensor(name, weight, x)
        with naming("x"):
            array = as_array(x)
        return self._multiply_array(name, weight, array)

    def plan(self, m: int, k: int, n: int, layout: Layout = "nk") -> MatmulPlan:
        """Return the plan of `matmul` for x [m, k] and a weight with k inputs, n outputs.

        `matmul` runs by this very object.

        Raises:
            ArgumentError: If the layout is another word.
            ShapeError: If a length is negative.
            LimitError: If the adapter cannot bind a row of the weight, x or the result.
        """
        m, k, n = normalise_shape((m, k, n))
        return self._plan(m, k, n, check_layout(layout))

    # ---- memory

    @property
    def memory(self) -> MemoryUse:
        """The memory that the cache uses now."""
        return MemoryUse(self.weight_bytes, self._inputs.nbytes, self._outputs.nbytes)

    def release_buffers(self) -> None:
        """Give the buffers for NumPy arrays back to the context's pool.

        The next product of an array makes them anew.  `ctx.trim()` frees the pool.
        """
        self._inputs.release()
        self._outputs.release()

    # ---- inside

    def _held(self) -> Mapping[str, Weight]:
        """Return the weights as they are now: other threads may change the dictionary."""
        return self._weights.copy()

    def _find(self, name: str) -> Weight:
        check_string(name)
        weight = self._weights.get(name)
        if weight is None:
            raise self._unknown(name)
        return weight

    def _unknown(self, name: str) -> UnknownNameError:
        return unknown_name("MatmulCache", "weight", name, self.weight_names)

    def _plan(self, m: int, k: int, n: int, layout: Layout) -> MatmulPlan:
        key = (m, k, n, layout)
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                plan = make_plan(self._ctx, m, k, n, layout)
                self._plans.put(key, plan)
            return plan

    def _plan_for(self, name: str, weight: Weight, shape: Shape) -> MatmulPlan:
        if len(shape) not in {1, 2} or shape[-1] != weight.k:
            raise ShapeError(
                f"MatmulCache: x has shape {shape}; weight '{name}' ({weight.layout}, "
                f"n = {weight.n}) expects ({weight.k},) or (m, {weight.k})."
            )
        m = shape[0] if len(shape) == 2 else 1
        try:
            return self._plan(m, weight.k, weight.n, weight.layout)
        except LimitError as error:
            raise named(error, f"weight '{name}'") from None

    def _multiply_tensor(
        self, name: str, weight: Weight, x: Tensor[Any, R]
    ) -> Tensor[f32, R]:
        if x.element is not f32:
            raise DtypeError(
                f"MatmulCache: x has {x.element.__name__} elements; expected f32."
            )
        if x.ctx is not self._ctx:
            raise of_another_context("MatmulCache: x", x.ctx, self._ctx)
        plan = self._plan_for(name, weight, x.shape)
        y: Tensor[f32, R] = self._ctx.empty((*x.shape[:-1], weight.n), f32)
        multiply(plan, weight.parts, x, y)
        return y

    def _multiply_array(
        self, name: str, weight: Weight, array: NDArray[Any]
    ) -> NDArray[np.float32]:
        plan = self._plan_for(name, weight, array.shape)
        # One thread at a time is in a batch, and uses the shared buffers.
        with self._ctx.batch():
            x = self._inputs.view(array.shape)
            with naming("x"):
                x.copy_from(array)
            y = self._outputs.view((*array.shape[:-1], weight.n))
            multiply(plan, weight.parts, x, y)
            return y.numpy()


# Buffers that are reused from call to call.


@final
class GrowingBuffer:
    """A float32 buffer that calls share, and that grows when needed.

    Its views overlap, so a call must be done with its view before the next call.
    """

    def __init__(self, ctx: Context) -> None:
        """Start without memory."""
        self._ctx = ctx
        self._held: Vector[f32] | None = None

    @property
    def nbytes(self) -> int:
        """The size of the buffer in bytes."""
        held = self._held
        return 0 if held is None else held.nbytes

    def view(self, shape: Shape) -> Tensor[f32, Any]:
        """Return a view from the start of the buffer, with any contents."""
        count = math.prod(shape)
        held = self._held
        if held is None or held.size < count:
            # Returned first: the pool may lend that very buffer for the new length.
            self._held = held = None
            self._held = held = self._ctx.empty(count, f32)
        return held.rows(0, count).reshape(shape)

    def release(self) -> None:
        """Return the buffer to the context's pool, once no view is left.

        Another thread may be in the middle of a call.
        """
        self._held = None
