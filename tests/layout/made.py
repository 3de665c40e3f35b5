"""Structs made by hand: from text, as a program has them."""

from __future__ import annotations

from kerngen.ir.memory import Struct
from tests.compile import checked


def struct_of(fields: str, others: str = "") -> Struct:
    """Return the struct of these fields; `others` are items beside it."""
    structs = checked(f"struct S {{ {fields} }}\n{others}").structs
    return next(struct for struct in structs if struct.name == "S")
