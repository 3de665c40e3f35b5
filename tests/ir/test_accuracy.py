"""The accuracies of built-in functions are those that WGSL states (15.7.4.1)."""

from __future__ import annotations

import pytest

from kerngen.ir.builtins.table import BUILTINS

STATED = {
    "inverseSqrt": (2, 0, 0),
    "exp": (3, 2, 0),
    "exp2": (3, 2, 0),
    "log": (3, 0, 2.0**-21),
    "log2": (3, 0, 2.0**-21),
    "sin": (0, 0, 2.0**-11),
    "cos": (0, 0, 2.0**-11),
    "asin": (4096, 0, 6.81e-5),
    "acos": (4096, 0, 6.81e-5),
    "atan": (4096, 0, 0),
    "atan2": (4096, 0, 0),
}
"""Ulps, more of them for each 1 of |x|, and an absolute error."""

EXACT = "abs sign min max clamp saturate floor ceil round trunc step select".split()


@pytest.mark.parametrize("name", STATED)
def test_a_stated_accuracy_is_that_of_the_table(name: str) -> None:
    row = BUILTINS[name].accuracy
    assert (row.ulps, row.ulps_per_argument, row.absolute) == STATED[name]
    assert "WGSL 15.7.4.1" in row.source


@pytest.mark.parametrize("name", EXACT)
def test_a_choice_is_exact(name: str) -> None:
    row = BUILTINS[name].accuracy
    assert (row.ulps, row.ulps_per_argument, row.absolute) == (0, 0, 0)
    assert row.source.startswith("exact")


def test_no_accuracy_is_negative_or_worse_than_f16() -> None:
    for row in (builtin.accuracy for builtin in BUILTINS.values()):
        assert 0 <= row.ulps <= 8192
        assert row.ulps_per_argument in {0, 2, 4}
        assert row.absolute == 0 or 1e-7 < row.absolute <= 2.0**-9
