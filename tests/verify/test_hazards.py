"""Kernels that are wrong in the usual ways: the report says where f32 has no number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kerngen.cli.project import select
from kerngen.cli.settings import Project
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.hazard_scan import hazards_of
from kerngen.verify.subjects import subjects

FILE = Path(__file__).with_name("hazards.kern")

FOUND = {
    "naive": ("overflow", "exp(104.524) is not finite in f32"),
    "naive_gradient": ("overflow", "exp(104.524) is not finite in f32"),
    "spread": ("cancellation", "998891 - 998891 loses all digits: both are rounded"),
    "ratio": ("division", "0 / 0"),
    "root": ("undefined", "sqrt(-0.000882784) is not a number"),
    "root_beside_a_state": ("undefined", "sqrt(-0.000643902) is not a number"),
    "halves": ("overflow", "85849 is more than an f16 holds"),
    "powers": (
        "overflow",
        "the product of 4 terms up to 1.18999e+10 is not finite in f32",
    ),
}
"""What is told of each kernel; the others are sound."""


def test_what_leads_beyond_the_numbers_is_told() -> None:
    selection = select(FILE, Project())
    with subjects(selection.library(), [f.name for f in selection.files]) as found:
        (several,) = found.values()
        hazards = {
            each.kernel.name: hazards_of(Fitting(each, reference_way(each)))
            for each in several
        }
    assert {
        name: (each.kind, each.text)
        for name, every in hazards.items()
        for each in every
    } == FOUND
    assert len(hazards) > len(FOUND)
    assert hazards["naive"][0].line == 4
    assert hazards["naive_gradient"][0].line == FILE.read_text().count("\n")
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(104.524)))
