"""Reading `.kern` files: UTF-8, limited in size, without a byte order mark."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path
from typing import Final

from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.text import Source, Span

LARGEST: Final = 2**20
"""The most bytes of a file."""

_AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class NotUtf8(Diagnostic, code="KG0001"):
    """A file that is not UTF-8."""

    MESSAGE = "The file is not in UTF-8: byte 0x{byte:02X} is not allowed here."
    HELP = "Save the file in UTF-8."
    byte: int


class FileTooLarge(Diagnostic, code="KG0009"):
    """A file beyond the size limit."""

    MESSAGE = f"The file is too large: it has more than {LARGEST} bytes."
    HELP = "Split it into several files."


def read_source(file: Path, shown_as: str, stable_name: str = "") -> Source:
    """Read a file, without a byte order mark; the text is otherwise unchanged.

    Raises `CompileError` if the file isn't UTF-8 or is too large, and `OSError` as
    `read_data` does.
    """
    return decode_source(read_data(file), shown_as, stable_name)


def read_data(file: Path) -> bytes:
    """Read a file's bytes; of a file beyond the size limit just enough to detect that.

    Raises `OSError` as `open` does, or if it is no regular file: a pipe would keep its
    reader waiting.
    """
    # Opening a pipe must not wait either.
    handle = os.open(file, os.O_RDONLY | _AT_ONCE)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", str(file))
        return stream.read(LARGEST + 1)


def decode_source(data: bytes, shown_as: str, stable_name: str = "") -> Source:
    """Return a source from the bytes of a file or pipe."""
    if len(data) > LARGEST:
        raise CompileError([FileTooLarge(span=Span(Source(shown_as, ""), 0, 0))])
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return Source(shown_as, data.decode("utf-8"), stable_name)
    except UnicodeDecodeError as error:
        source = Source(shown_as, data.decode("utf-8", errors="replace"))
        at = len(data[: error.start].decode("utf-8"))
        fault = NotUtf8(span=Span(source, at, at + 1), byte=data[error.start])
        raise CompileError([fault]) from None
