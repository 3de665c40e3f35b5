"""Reading a `.kern` file."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.text import Source, Span


@final
@dataclass(frozen=True, kw_only=True)
class NotUtf8(Diagnostic):
    """A file in another encoding."""

    code: ClassVar[str] = "KG0001"
    rule: ClassVar[str] = "A file is encoded in UTF-8."

    byte: int

    @property
    def headline(self) -> str:
        """Names the byte."""
        return f"The file is not in UTF-8: byte 0x{self.byte:02X} can't stand here."

    @property
    def hint(self) -> str:
        """Says what to do."""
        return "Save the file in UTF-8."


def read_source(file: Path, shown_as: str, stable_name: str = "") -> Source:
    """Read a file, without a byte order mark; the text is otherwise as it stands.

    Raises `CompileError` if the file isn't UTF-8, and `OSError` as `open` does.
    """
    return decode_source(file.read_bytes(), shown_as, stable_name)


def decode_source(data: bytes, shown_as: str, stable_name: str = "") -> Source:
    """Return what was read of a file, or of a pipe, in the same way."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return Source(shown_as, data.decode("utf-8"), stable_name)
    except UnicodeDecodeError as error:
        source = Source(shown_as, data.decode("utf-8", errors="replace"))
        at = len(data[: error.start].decode("utf-8"))
        fault = NotUtf8(span=Span(source, at, at + 1), byte=data[error.start])
        raise CompileError([fault]) from None
