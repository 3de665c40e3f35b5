"""Calls of kernels in a browser: arguments and results as JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.calls.kernel import Kernel, TensorSpec
from kerngen.runtime.values.fields import is_leaf
from tests.web.browser import Browser


def begin(
    page: Browser,
    module: str,
    kernel: Kernel,
    arrays: Iterable[NDArray[Any]],
    scalars: Mapping[str, float | tuple[float, ...]],
    plan: str = "",
) -> int:
    """Start a call, by a plan other than the kernel's own if one is given."""
    specs = kernel.inputs
    return page.start(
        "call",
        module=module,
        kernel=kernel.name,
        plan=plan,
        tensors=[_sent(*pair) for pair in zip(specs, arrays, strict=True)],
        scalars={name: _number(value) for name, value in scalars.items()},
    )


def results(page: Browser, kernel: Kernel, number: int) -> list[NDArray[Any]]:
    """Wait for a call; return the tensors that change, then the outputs."""
    changed = [spec for spec in kernel.inputs if spec.access == "update"]
    specs = *changed, *kernel.outputs
    return [*map(_received, page.finish(number)["arrays"], specs)]


def _sent(spec: TensorSpec, array: NDArray[Any]) -> dict[str, Any]:
    """An argument as JSON; what is narrower goes as f32, which the page makes it of."""
    assert is_leaf(spec.element)
    name = spec.element.__name__
    is_narrow = spec.element.number.size < 4
    sent = array.astype(np.float32) if is_narrow else array
    data = b64encode(np.ascontiguousarray(sent).tobytes()).decode()
    axes = array.shape[: len(spec.axes)]
    return {"data": data, "shape": axes, "element": name}


def _received(each: dict[str, Any], spec: TensorSpec) -> NDArray[Any]:
    """A result; f16 come as f32, which hold them exactly."""
    dtype = each["dtype"].removesuffix("Array").lower()
    assert is_leaf(spec.element)
    shape = *each["shape"], *spec.element.shape
    array = np.frombuffer(b64decode(each["data"]), dtype).reshape(shape)
    base = spec.element.DTYPE.base
    # Vectors of three are records with a gap behind them.
    return array.astype(base["value"].base if base.names else base)


def _number(value: float | tuple[float, ...]) -> Any:
    """A scalar as JSON, which has no words for infinities and NaN."""
    if isinstance(value, tuple):
        return [*map(_number, value)]
    return value if isfinite(value) else str(value).replace("inf", "Infinity")
