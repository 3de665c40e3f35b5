"""The built-in functions: one row each.

A row says the name, the types, the WGSL spelling, the NumPy meaning and the accuracy.
Checker, printers, reference, tests and documentation all read this table.
"""

from __future__ import annotations

from kerngen.ir.builtin import Accuracy, Builtin, Overload
from kerngen.ir.builtins_float import FLOAT_ROWS
from kerngen.ir.builtins_shared import INTEGER_ROWS, SHARED_ROWS

__all__ = ["BUILTINS", "Accuracy", "Builtin", "Overload"]

BUILTINS = {row.name: row for row in (*SHARED_ROWS, *FLOAT_ROWS, *INTEGER_ROWS)}
"""Every built-in by its name in the language."""
