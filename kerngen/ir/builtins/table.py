"""The built-in functions: one row each.

Checker, printers, constant folding, references, `kerngen verify`, gradients, tests and
documentation all read this table: to add a function is to add a row.
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
"""The operator that is the same as a floored built-in where nothing is negative."""
