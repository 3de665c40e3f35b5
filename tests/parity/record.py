"""Records of trainings, how far two of them are apart, and how far they may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from tests.parity.tasks import Array

EARLY = 50
"""The steps up to which rounding has not been amplified much."""

EARLY_LIMIT, LIMIT = 1e-4, 1e-3
"""How far losses and norms may be apart, early and later; parameters as later."""


@final
@dataclass(frozen=True)
class Record:
    """The loss and the norm of the gradients of each step, and the parameters at the end."""

    losses: Array
    norms: Array
    parameters: Mapping[str, Array]


@final
@dataclass(frozen=True)
class Differences:
    """Relative differences of two records: of each step, and of each parameter's norm."""

    losses: Array
    norms: Array
    parameters: Mapping[str, float]

    def largest(self) -> Array:
        """Return the largest of the losses', of the norms' and of the parameters'."""
        series = self.losses, self.norms, [*self.parameters.values()]
        return np.array([np.max(each) for each in series])

    def faults(self) -> list[str]:
        """Say what is further apart than it may be; what is no number is."""
        return list(self._faults())

    def _faults(self) -> Iterator[str]:
        for what, found in (("loss", self.losses), ("norm", self.norms)):
            limits = np.where(np.arange(len(found)) < EARLY, EARLY_LIMIT, LIMIT)
            for step in np.flatnonzero(~(found <= limits))[:1]:
                yield f"{what} at step {step + 1}: {found[step]:.2g}"
        for name, difference in self.parameters.items():
            if not difference <= LIMIT:
                yield f"{name}: {difference:.2g}"


def compare(found: Record, expected: Record) -> Differences:
    """Return how far a record is from another of the same task."""
    assert found.parameters.keys() == expected.parameters.keys()
    return Differences(
        abs(found.losses - expected.losses) / abs(expected.losses),
        abs(found.norms - expected.norms) / abs(expected.norms),
        {
            name: _distance(array, expected.parameters[name])
            for name, array in found.parameters.items()
        },
    )


def _distance(found: Array, expected: Array) -> float:
    """Return the norm of the difference, relative to the expected norm."""
    assert found.shape == expected.shape
    exact = expected.astype(np.float64)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
