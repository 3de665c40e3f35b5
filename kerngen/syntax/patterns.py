"""Names of kernels in schedules: one kernel, or a pattern such as `matmul_*`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

ANY: Final = "*"
"""What matches any characters, or none."""


def is_pattern(name: str) -> bool:
    """Whether a schedule's target is a pattern, not the name of one kernel."""
    return ANY in name


def matching(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """
    Yield the names that a pattern matches; a plain name matches itself alone.

    >>> list(matching("matmul_*_bias", ["matmul_nn_bias", "matmul_nn"]))
    ['matmul_nn_bias']
    """
    # fnmatch takes linear time for any number of stars, unlike a plain `.*` for each.
    return (name for name in names if fnmatchcase(name, pattern))
