"""The kernels of `kernels.kern`, as the oracle takes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kerngen.source.text import Source
from kerngen.syntax.library import Library
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.subjects import subjects

FILE = Path(__file__).with_name("kernels.kern")


@pytest.fixture(scope="session")
def known() -> Iterator[dict[str, Subject]]:
    """Kernels by name; no device is needed for them."""
    library = Library(
        lambda name: Source(name, FILE.read_text("utf-8")), [FILE.name], None
    )
    with subjects(library, [FILE.name]) as found:
        yield {each.kernel.name: each for each in found[FILE.name]}
