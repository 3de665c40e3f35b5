"""Array arguments from users: NumPy's, another library's, or nested lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import DtypeError, Error, ShapeError
from kerngen.runtime.values.kinds import kind_of


def as_array(values: object) -> NDArray[Any]:
    """Return values as a NumPy array, copied only if need be.

    Raises:
        ShapeError: If they form no array, because rows differ in length.
        DtypeError: If the library that they come from refuses, or elements are masked.
    """
    kind = kind_of(values)
    try:
        hidden = _hides(values)
    except RecursionError:
        raise ShapeError(f"No array can be made of {kind}: it holds itself.") from None
    if hidden:
        raise DtypeError(
            f"Elements of {kind} are masked, and a tensor has no mask: they would "
            f"count. Say what they are first, by array.filled(...)."
        )
    try:
        return np.asarray(values)
    except Error:  # of a tensor of ours that cannot be read
        raise
    except ValueError as error:
        raise ShapeError(
            f"No array can be made of {kind}; expected rows of one length. NumPy says: "
            f"{error}"
        ) from error
    except (RuntimeError, TypeError) as error:
        reason = str(error).rstrip(".")
        raise DtypeError(
            f"No array can be made of {kind}: {reason}. Of a PyTorch tensor, give "
            f"tensor.detach().cpu(), and .float() of that where it is bfloat16."
        ) from error


def _hides(values: object) -> bool:
    """Return whether a masked array hides elements: `np.asarray` would drop the mask."""
    if isinstance(values, list | tuple):
        parts = cast("Sequence[object]", values)
        # Types first, since there may be millions of numbers.
        nested = any(issubclass(kind, _NESTED) for kind in set(map(type, parts)))
        return nested and any(map(_hides, parts))
    # Looking at np.ma imports it, and most arrays are of no class of their own.
    if type(values) is np.ndarray or not isinstance(values, np.ndarray):
        return False
    if not isinstance(values, np.ma.MaskedArray):
        return False
    # A record has a flag for each field.
    mask: NDArray[Any] = np.ma.getmaskarray(cast("Any", values))
    return bool(mask.reshape(-1).view(np.bool_).any())


_NESTED: tuple[type, ...] = (list, tuple, np.ndarray)
"""The types of parts that may hold a masked array."""
