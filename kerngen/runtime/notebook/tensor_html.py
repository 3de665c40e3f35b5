"""The notebook display of a tensor: its type, its context, and its values.

Of a large tensor only the values that NumPy would show are read from the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import Error
from kerngen.runtime.notebook.html import code, element

if TYPE_CHECKING:
    from kerngen.runtime.tensor import Tensor

_WHOLE: Final = 1 << 20
"""The most bytes of a tensor that is read whole; of a larger one, the ends of axes are read."""

_ENDS: Final = 3
"""The elements that NumPy shows at either end of an axis that it shortens."""


def tensor_html(tensor: Tensor[Any, Any]) -> str:
    """Return the HTML of a tensor; values that can't be read are replaced by the reason."""
    ctx = tensor.ctx
    lengths = ", ".join(map(str, tensor.shape))
    head = element(
        "div",
        element("code", f"{tensor.element.__name__}[{lengths}]"),
        f" on {ctx.adapter_name} ({ctx.kind}), {tensor.nbytes} bytes",
    )
    return element("div", head, code(_values(tensor))).text


def _values(tensor: Tensor[Any, Any]) -> str:
    try:
        if tensor.nbytes <= _WHOLE:
            return str(tensor.numpy())
        with np.printoptions(threshold=0, edgeitems=_ENDS):
            return str(_shortened(tensor))
    except Error as error:
        return f"The values can't be read: {error}"


def _shortened(tensor: Tensor[Any, Any]) -> NDArray[Any]:
    """Return an array that is shown as the tensor would be.

    Its axes are shorter: both ends, and one between them for all that are left out.
    """
    if not tensor.shape or tensor.nbytes <= _WHOLE:
        return tensor.numpy()
    length = tensor.shape[0]
    ends = (*range(_ENDS + 1), *range(length - _ENDS, length))
    rows = range(length) if length <= len(ends) else ends
    return np.stack(
        [
            _shortened(tensor.rows(row, row + 1).reshape(tensor.shape[1:]))
            for row in rows
        ]
    )
