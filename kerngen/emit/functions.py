"""The Python forms of the user's functions: what calls of them must know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A user's function as generated Python: its name, and how it is called.

    If it `needs_real`, the float type to compute in is its first argument.  A `fresh`
    result is a new array, never one of the arguments.
    """

    name: str
    needs_real: bool
    fresh: bool
