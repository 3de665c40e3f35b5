"""Structs made by hand: from text, as a program has them."""

from __future__ import annotations

from kerngen.check.files.module import check
from kerngen.ir.memory import Struct
from kerngen.source.text import Source
from kerngen.syntax.parser import read


def struct_of(fields: str, others: str = "") -> Struct:
    """Return the struct of these fields; `others` are items beside it."""
    source = Source("made.kern", f"struct S {{ {fields} }}\n{others}")
    structs = check(read(source), source).structs
    return next(struct for struct in structs if struct.name == "S")
