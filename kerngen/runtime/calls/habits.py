"""Operators and attributes of NumPy and PyTorch arrays that tensors lack, with advice.

`t + 1`, `t.T` and `ctx.ones(3)` raise an error that names what to write instead.  Type
checkers see none of these methods, and so report each use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

import numpy as np

from kerngen.runtime.errors import DtypeError

_BINARY: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
"""The operators that have a reflected method, `1 + t`, as well."""

# `==` and `!=` are methods of `Tensor`, as they return False for anything but arrays.
_COMPARISONS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY: Final = {"neg": "-t", "pos": "+t", "invert": "~t", "abs": "abs(t)"}

KERNELS: Final = {
    "+": "elementwise.add",
    "-": "elementwise.sub",
    "*": "elementwise.mul",
    "/": "elementwise.div",
    "@": "matmul.matmul_nn",
    "-t": "elementwise.neg",
    "abs(t)": "elementwise.abs",
}
"""The standard kernels that compute an operator, for the error's hint."""

# The advice for several attributes each.
_TRANSPOSED: Final = (
    "Tensors have no strides, so there is no transposed view: copy by "
    "kerngen_kernels.layout.transpose(t), multiply by matmul_nt or matmul_tn, or read "
    "'t[j, i]' in a kernel of your own."
)
_CONVERTED: Final = (
    "Convert elements by a kernel, as those of kerngen_kernels.cast and .half, or when "
    "you upload them: ctx.tensor(array, f16)."
)
_REDUCED: Final = (
    "Reduce tensors by a kernel: kerngen_kernels.reduction has sum, mean, max and min of "
    "vectors, kerngen_kernels.statistics has them by rows."
)
_RESHAPED: Final = "Use t.reshape(-1), or any other shape: that is a view."
_COPIED: Final = "Make another: c = ctx.empty(t.shape, t.element); c.copy_from(t)."

_UPLOADED: Final = "Upload an array: ctx.tensor(np.{}, f32)."
_SUBMITTED: Final = "Use ctx.submit(); t.numpy() submits, and waits for what it reads."

CONTEXT_ADVICE: Final[Mapping[str, str]] = {
    **{name: _UPLOADED.format(f"{name}(shape)") for name in ("ones", "eye")},
    "full": _UPLOADED.format("full(shape, value)"),
    "arange": _UPLOADED.format("arange(n)"),
    "linspace": _UPLOADED.format("linspace(start, stop, n)"),
    **dict.fromkeys(("rand", "random"), _UPLOADED.format("random.random(shape)")),
    "randn": _UPLOADED.format("random.standard_normal(shape)"),
    **dict.fromkeys(
        ("array", "asarray", "from_numpy", "upload"),
        "Use ctx.tensor(array, f32), or ctx.vector, ctx.matrix, which have a static rank.",
    ),
    **dict.fromkeys(("sync", "synchronize", "flush", "wait"), _SUBMITTED),
    "zeros_like": "Use ctx.zeros(t.shape, t.element).",
    "empty_like": "Use ctx.empty(t.shape, t.element).",
    "ones_like": _UPLOADED.format("ones(t.shape)"),
}
"""What to do instead of an attribute that NumPy and PyTorch have and a context lacks."""

ADVICE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("T", "mT", "transpose", "permute", "swapaxes"), _TRANSPOSED),
    **dict.fromkeys(("astype", "to", "type", "float", "half", "int"), _CONVERTED),
    **dict.fromkeys(("sum", "mean", "max", "min", "var", "std"), _REDUCED),
    **dict.fromkeys(("cpu", "detach", "data", "tolist"), "Read it by t.numpy()."),
    **dict.fromkeys(("flatten", "ravel", "view", "squeeze"), _RESHAPED),
    **dict.fromkeys(("copy", "clone"), _COPIED),
    **dict.fromkeys(("fill", "fill_", "zero_"), "Use t.clear(), t.copy_from(array)."),
    "device": "Use t.ctx, the tensor's context.",
}
"""What to do instead of an attribute of arrays, by its name."""


def missing_attribute(
    advice: Mapping[str, str],
) -> Callable[[object, str], NoReturn]:
    """Return a `__getattr__` that raises AttributeError, with the advice for that name."""

    def refuse(owner: object, name: str) -> NoReturn:
        text = f"'{type(owner).__name__}' object has no attribute '{name}'"
        more = f". {advice[name]}" if name in advice else ""
        raise AttributeError(text + more, name=name, obj=owner)

    return refuse


def missing_operators() -> dict[str, Callable[..., object]]:
    """Return a method for each operator of arrays, by its name: it raises with advice."""
    return {
        **{f"__{name}__": _binary(symbol) for name, symbol in _BINARY.items()},
        **{f"__r{name}__": _binary(symbol) for name, symbol in _BINARY.items()},
        **{f"__{name}__": _binary(symbol) for name, symbol in _COMPARISONS.items()},
        **{f"__{name}__": _unary(symbol) for name, symbol in _UNARY.items()},
        **{f"__{kind}__": _number(kind) for kind in ("float", "int", "complex")},
        "__array_ufunc__": no_ufunc,
        **dict.fromkeys(("__setitem__", "__delitem__"), no_assignment),
    }


def _binary(symbol: str) -> Callable[[object, object], object]:
    """Return a method for an operator of two operands, which raises."""

    def refuse(_: object, other: object) -> NoReturn:
        del other
        raise _no_operator(symbol, f"t.numpy() {symbol} ...")

    return refuse


def _unary(form: str) -> Callable[[object], object]:
    """Return a method for an operator of one operand, written as `-t`, which raises."""

    def refuse(_: object) -> NoReturn:
        raise _no_operator(form, form.replace("t", "t.numpy()"))

    return refuse


def _number(kind: str) -> Callable[[object], object]:
    """Return a method for `float(t)` and the like, which raises."""

    def refuse(_: object) -> NoReturn:
        raise DtypeError(
            f"A tensor is no number: '{kind}(t.item())' reads the only element of one, "
            f"and t.numpy() reads all elements."
        )

    return refuse


def no_ufunc(_: object, ufunc: np.ufunc, *given: object, **named: object) -> NoReturn:
    """Refuse NumPy's ufuncs; the operators of arrays call them, too: `array + t`.

    A ufunc would read the tensor unasked, and compute on the host.
    """
    del given, named
    name = ufunc.__name__
    raise DtypeError(
        f"np.{name}, or an array's operator that calls it, does not take a tensor: read "
        f"it first by t.numpy(), and NumPy computes on the host, or call a kernel, one "
        f"of kerngen_kernels or of your own."
    )


def no_assignment(*_: object) -> NoReturn:
    """Refuse `t[0] = 1` and `del t[0]`."""
    raise DtypeError(
        "Elements of a tensor are neither assigned nor deleted by 't[...]': write rows "
        "by t[2:5].copy_from(array), elements by a kernel."
    )


def _no_operator(symbol: str, example: str) -> DtypeError:
    kernel = KERNELS.get(symbol)
    own = "a kernel of your own"
    known = f"kerngen_kernels.{kernel}, or {own}," if kernel else own
    return DtypeError(
        f"Tensors have no operators: call {known} instead of '{symbol}'. NumPy computes "
        f"'{example}', which reads the tensor."
    )
