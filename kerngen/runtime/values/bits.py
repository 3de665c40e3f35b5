"""Conversion of NaNs that keeps their bits, where NumPy and `struct` would change them.

Between f32 or f16 and Python's floats, `struct` and NumPy make a signalling NaN quiet,
and some drop its other bits.  Here its sign and its fraction stay as they are, the
fraction at the upper end of the wider one:

    f32:       s eeeeeeee fffffffffffffffffffffff
    double:    s 11111111111 fffffffffffffffffffffff 00000000000000000000000000000
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

_FRACTION = 52
"""The number of bits of a double's fraction."""


@final
@dataclass(frozen=True, slots=True)
class Narrow:
    """A float format narrower than a double: the number of bits of exponent and fraction."""

    exponent: int
    fraction: int
    unsigned: np.dtype[Any]
    code: str
    """The `struct` code of an unsigned integer as wide."""

    @property
    def dropped(self) -> int:
        """How many fraction bits a double has more than this format."""
        return _FRACTION - self.fraction

    def nan_bits(self, value: float) -> int:
        """Return a NaN's bits in this format; a quiet NaN, if no fraction bit is left."""
        wide: int = struct.unpack("<Q", struct.pack("<d", value))[0]
        fraction = (wide & ((1 << _FRACTION) - 1)) >> self.dropped
        # A fraction of 0 would be an infinity: the highest bit makes it a quiet NaN.
        fraction = fraction or 1 << (self.fraction - 1)
        exponent = ((1 << self.exponent) - 1) << self.fraction
        return (wide >> 63) << (self.exponent + self.fraction) | exponent | fraction

    def nan(self, bits: int) -> float:
        """Return the NaN with these bits, as a double."""
        fraction = bits & ((1 << self.fraction) - 1)
        sign = bits >> (self.exponent + self.fraction)
        wide = sign << 63 | 0x7FF << _FRACTION | fraction << self.dropped
        value: float = struct.unpack("<d", struct.pack("<Q", wide))[0]
        return value


NARROW = {
    "f": Narrow(8, 23, np.dtype("<u4"), "I"),
    "e": Narrow(5, 10, np.dtype("<u2"), "H"),
}
"""The formats by the `struct` code of their floats."""


def widen(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array of floats as doubles, with the NaNs' bits kept.

    A longdouble too large for a double becomes an infinity.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        wide = array.astype(np.float64)
    nans = np.isnan(array)
    if array.dtype.itemsize < 8 and nans.any():
        narrow = NARROW[array.dtype.char]
        bits = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))[nans])
        listed = cast("list[int]", bits.view(narrow.unsigned).tolist())
        wide[nans] = [narrow.nan(each) for each in listed]
    return wide
