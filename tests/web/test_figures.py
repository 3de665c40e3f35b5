"""The figures that `python -m tests.web.figures` prints, with room for a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.figures import figures, package_sizes

pytestmark = pytest.mark.web

BUSY = 3
"""A time may be so much longer: other tests run beside."""


def test_the_package_is_small(package: Path) -> None:
    assert package.is_dir()
    assert [x.line for x in package_sizes() if x.value > x.most] == []


@pytest.mark.nightly
def test_they_are_within_their_bounds(package: Path, tmp_path: Path) -> None:
    assert package.is_dir()
    sizes = {"kB", "MB"}
    found = [*figures(tmp_path)]
    assert len(found) == 14
    over = [
        x.line for x in found if x.value > x.most * (1 if x.unit in sizes else BUSY)
    ]
    assert not over
