"""Steps are those of PyTorch's optimizers."""

from __future__ import annotations

import pytest

import kerngen.runtime as gpu

from .optimizers import CASES, Case, check_settings_by_name, check_steps

pytestmark = [
    pytest.mark.torch,
    pytest.mark.parametrize("case", [c for c in CASES if c.name != "lion"], ids=str),
]


@pytest.mark.parametrize("clip", [0.5, 1e9])
def test_steps_are_those_of_torch(ctx: gpu.Context, case: Case, clip: float) -> None:
    from .in_torch import InTorch

    check_steps(ctx, clip, InTorch, case)


def test_settings_by_name_are_those_of_torchs_groups(
    ctx: gpu.Context, case: Case
) -> None:
    from .in_torch import InTorch

    check_settings_by_name(ctx, InTorch, case)
