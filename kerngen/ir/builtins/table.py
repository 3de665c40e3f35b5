"""The table of built-in functions, one row each.

The checker, printers, constant folding, references, `kerngen verify`, gradients, tests and
documentation read this table: a new function is a new row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kerngen.ir.builtins.angles import ANGLE_ROWS
from kerngen.ir.builtins.bits import BIT_ROWS
from kerngen.ir.builtins.floats import FLOAT_ROWS
from kerngen.ir.builtins.numbers import NUMBER_ROWS
from kerngen.ir.builtins.row import Accuracy, Builtin, Overload

__all__ = ["BUILTINS", "TRUNCATING", "Accuracy", "Builtin", "Overload"]

_ROWS: Final = (*NUMBER_ROWS, *FLOAT_ROWS, *ANGLE_ROWS, *BIT_ROWS)

BUILTINS: Final[dict[str, Builtin]] = {row.name: row for row in _ROWS}
"""Every built-in by its name in the language."""

TRUNCATING: Final[Mapping[str, Literal["/", "%"]]] = {
    name: row.truncating for name, row in BUILTINS.items() if row.truncating
}
"""For `floor_div` and `mod`, the operator that gives the same where nothing is negative."""
