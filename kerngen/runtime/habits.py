"""What arrays of NumPy and PyTorch have and tensors lack, each with what to do instead.

Operators and attributes of `Tensor` that raise an error with that advice.  Type checkers
are shown none of them, and so report each use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

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
"""The standard kernels that compute what an operator means."""

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


def missing_attribute(tensor: object, name: str) -> NoReturn:
    """Raise what Python raises where an attribute is missing, with advice."""
    text = f"'{type(tensor).__name__}' object has no attribute '{name}'"
    advice = f". {ADVICE[name]}" if name in ADVICE else ""
    raise AttributeError(text + advice, name=name, obj=tensor)


def missing_operators() -> dict[str, Callable[..., object]]:
    """Return the methods of the operators by name: each refuses, with advice."""
    return {
        **{f"__{name}__": _binary(symbol) for name, symbol in _BINARY.items()},
        **{f"__r{name}__": _binary(symbol) for name, symbol in _BINARY.items()},
        **{f"__{name}__": _binary(symbol) for name, symbol in _COMPARISONS.items()},
        **{f"__{name}__": _unary(symbol) for name, symbol in _UNARY.items()},
    }


def is_numpys(other: object) -> bool:
    """Whether NumPy or a library like it does the operators: it reads the tensor."""
    return hasattr(type(other), "__array_ufunc__")


def _binary(symbol: str) -> Callable[[object, object], object]:
    def refuse(_: object, other: object) -> object:
        if is_numpys(other):
            return NotImplemented
        raise _no_operator(symbol, f"t.numpy() {symbol} ...")

    return refuse


def _unary(form: str) -> Callable[[object], object]:
    def refuse(_: object) -> NoReturn:
        raise _no_operator(form, form.replace("t", "t.numpy()"))

    return refuse


def _no_operator(symbol: str, example: str) -> DtypeError:
    kernel = KERNELS.get(symbol)
    known = f"kerngen_kernels.{kernel} or one" if kernel else "one"
    return DtypeError(
        f"Tensors have no operators: instead of '{symbol}' call a kernel, {known} of your "
        f"own. NumPy computes '{example}', which reads the tensor."
    )
