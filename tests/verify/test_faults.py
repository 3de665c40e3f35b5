"""Faults planted in the compiler, the runtime and the references show in some kernel.

They are those of the tests of random programs; `battery.kern` has a kernel for each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kerngen.cli.project import select
from kerngen.cli.settings import Project
from kerngen.verify import campaign
from kerngen.verify.campaign import Campaign
from kerngen.verify.effort import Effort
from kerngen.verify.guarded import guarded
from kerngen.verify.result import Verdict, WayResult
from kerngen.verify.subjects import subjects
from tests.programs.faults import FAULTS, PlantedFault
from tests.verify.patches import nothing

BATTERY = Path(__file__).with_name("battery.kern")

SHOWS: Final = {
    "a dropped tail": "parts",
    "a wrong stride": "moved",
    "a swapped operand": "parts",
    "a stale let": "kept",
    "an unclamped gather": "gathered",
    "a guard that is off by one": "parts",
    "a last element that is left out": "moved",
    "a maximum that starts too high": "greatest",
    "a lost remainder": "moved",
    "signed numbers compared as unsigned": "parts",
    "no snapshot of what a statement reads elsewhere": "taken",
    "a lost transpose in the reference": "moved",
    "a wrong broadcast in the reference": "averaged",
    "a wrong field of the uniform struct": "moved",
    "a variant for sizes that it does not suit": "kept",
    "a dropped part of a total": "kept",
    "shift counts cut to four bits in the reference": "bits",
    "a conversion that does not saturate in the reference": "whole",
    "swapped dims in the reference": "moved",
    "swapped branches": "parts",
    "an affine subscript with a lost sign": "turned",
    "slices of a column that all begin at the top": "columns",
    "vectors of a row that overlap": "weighed",
    "indices of an inlined let in the wrong order": "crossed",
    "a lost part of what the lanes of a row join": "softened",
    "a long row of which every other part is skipped": "softened",
    "padding behind a member that the shader leaves out": "balls",
    "components of a vector in the wrong order": "balls",
    "a product with a matrix by its rows in the reference": "balls",
    "an array in a struct of which only the first element is read": "balls",
    "a component that is written to another's place": "placed",
    "a missing barrier": "columns",
    "a reduction over the wrong index": "doubly",
    "a tile that is not cut at the edge": "tiled",
    "stages joined although one reads the other's neighbours": "followed",
    "stages that are skipped behind one that runs alone": "followed",
    "a subscript one beyond its axis": "shifted",
    "members taken to be apart that are one": "mirrored",
    "an element of a fixed array that is written by another index": "trails",
    "a condition that keeps what it should leave out": "chosen",
    "a prefix that is a term too long": "chosen",
    "a key that counts where it is no place": "chosen",
}
"""The kernel in which each fault shows."""

UNSEEN: Final = {
    "constants folded the wrong way round": "the checker folds them",
    "a compound assignment by the wrong operator": "the checker writes it out",
    "a struct of which the last member is not copied": "the checker writes copies out",
}
"""Faults that change what the typed program says, which is what results are held to.

The tests of random programs find them, by an interpreter of the syntax tree.
"""


@pytest.fixture(autouse=True)
def no_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make no large calls: they take a second each, and show other faults."""
    monkeypatch.setattr(campaign, "large_sizes", nothing)


def first_wrong(kernel: str) -> WayResult | None:
    """The first way to run a kernel of the battery that goes wrong."""
    selection = select(BATTERY, Project())
    names = [file.name for file in selection.files]
    with guarded() as held, subjects(selection.library(), names) as found:
        held_to = Campaign(held, Effort(12, 0))
        ((file, several),) = found.items()
        (subject,) = (each for each in several if each.kernel.name == kernel)
        results = held_to.results([(file, subject)])
        return next((r for r in results if r.verdict is Verdict.WRONG), None)


def test_every_fault_is_known() -> None:
    assert {fault.name for fault in FAULTS} == SHOWS.keys() | UNSEEN.keys()


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [f for f in FAULTS if f.name in SHOWS], ids=str)
def test_a_fault_of_the_compiler_is_found(fault: PlantedFault) -> None:
    with fault.planted():
        assert first_wrong(SHOWS[fault.name]) is not None


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", sorted({*SHOWS.values()}))
def test_the_battery_holds(kernel: str) -> None:
    assert first_wrong(kernel) is None
