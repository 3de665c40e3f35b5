"""What callers must know of the user's functions as Python functions of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """One function of the generated module.

    If it `needs_real`, the float type to compute in is its first argument.  A `fresh`
    result is a new array, never one of the arguments.
    """

    name: str
    needs_real: bool
    fresh: bool
