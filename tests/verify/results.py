"""Calls and results that tests of verify make up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kerngen.verify.fault import Tally
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.result import WayResult
from kerngen.verify.trial import Given


def given_of(arrays: list[Any], *scalars: Any, **more: Any) -> Given:
    """Return a call of one length `n`."""
    sizes = (("n", len(arrays[0])),)
    made = tuple(np.asarray(each, np.float32) for each in arrays)
    return Given(sizes, made, scalars, **more)


def result_of(subject: Subject, **more: Any) -> WayResult:
    """Return a result of two calls, with some of its fields changed."""
    tally = Tally(cases=2, elements=8, known=6, worst=0.5)
    plain = WayResult("a.kern", "k[1]", "y", "map", "edge", subject, tally=tally)
    return replace(plain, **more)
