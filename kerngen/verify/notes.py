"""Hypothesis's database, kept out of the user's folder."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from hypothesis.configuration import set_hypothesis_home_dir


@contextmanager
def notes_elsewhere() -> Generator[None]:
    """Keep hypothesis's database in a temporary folder during a block.

    Else hypothesis makes a folder '.hypothesis' where the user works.
    """
    with TemporaryDirectory(prefix="kerngen-verify-") as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)
