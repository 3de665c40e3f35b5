"""Campaigns: how ways share the time, and which calls belong to a seed."""

from __future__ import annotations

import pytest

from kerngen.verify import verify
from kerngen.verify.effort import Effort

SCALE = "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = 0.3 * x[i]; }"
GRADIENT = f"{SCALE}\nkernel scale_gradient = gradient of scale by x;"


def test_each_way_has_its_share_of_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[int] = []
    shared = Effort.shared

    def noted(self: Effort, ways: int) -> Effort:
        left.append(ways)
        return shared(self, ways)

    monkeypatch.setattr(Effort, "shared", noted)
    verify(SCALE, examples=1)
    assert left == [*range(len(left), 0, -1)]
    assert len(left) > 1


def test_a_seed_makes_other_calls_than_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Differences are taken by calls 6, 7 and 8 for seed 2 with three examples each."""
    seeds: list[int] = []

    def noted(_: object, seed: int) -> None:
        seeds.append(seed)

    monkeypatch.setattr("kerngen.verify.campaign._difference", noted)
    report = verify(GRADIENT, kernel="scale_gradient", seed=2, examples=3)
    assert seeds == [6, 7, 8]
    assert report["seed"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "kernel put(mut m: f32[a, b], x: f32[b], row: u32) { m[row, j] = 0.3 * x[j]; }",
        "kernel halve(x: f32[n]) -> y: f16[n] { y[i] = x[i] / 3.0; }",
        "kernel longer(x: vec3f[n], s: f32) -> y: vec3f[n] { y[i] = max(x[i], vec3f(s)); }",
    ],
)
def test_what_kernels_mean_is_known(text: str) -> None:
    """Each way is held, and most elements were compared."""
    report = verify(text, examples=3)
    for row in report["results"]:
        assert row["verdict"] == "held", row
        assert row["known"] >= 0.6 * row["elements"], row
