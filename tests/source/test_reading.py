"""Files are UTF-8; a byte order mark is dropped, everything else is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerngen.source.diagnostic import CompileError
from kerngen.source.reading import read_source
from kerngen.source.render import render


def written(folder: Path, data: bytes) -> Path:
    file = folder / "a.kern"
    file.write_bytes(data)
    return file


def test_text_is_kept(tmp_path: Path) -> None:
    text = "// \u00e9\u4e2d\r\n\tfn\n"
    source = read_source(written(tmp_path, text.encode()), "shown.kern")
    assert (source.path, source.text) == ("shown.kern", text)


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    source = read_source(written(tmp_path, b"\xef\xbb\xbffn"), "a.kern")
    assert source.text == "fn"


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf// \xc3\xa9 ok\n// caf\xe9 bad\n"
    with pytest.raises(CompileError) as caught:
        read_source(written(tmp_path, data), "a.kern")
    assert render(caught.value.diagnostics) == (
        "error[KG0001]: The file is not in UTF-8: byte 0xE9 is not allowed here.\n"
        " --> a.kern:2:7\n"
        "  |\n"
        "2 | // caf\ufffd bad\n"
        "  |       ^\n"
        "  |\n"
        "  = hint: Save the file in UTF-8.\n"
    )


def test_a_missing_file_is_the_callers_affair(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_source(tmp_path / "none.kern", "none.kern")
