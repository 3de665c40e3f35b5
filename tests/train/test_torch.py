"""Steps are those of PyTorch's optimizer."""

from __future__ import annotations

import pytest

import kerngen.runtime as gpu

from .adamw import check_settings_by_name, check_steps

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("clip", [0.5, 1e9])
def test_steps_are_those_of_torch(ctx: gpu.Context, clip: float) -> None:
    from .in_torch import AdamW

    check_steps(ctx, clip, AdamW)


def test_settings_by_name_are_those_of_torchs_groups(ctx: gpu.Context) -> None:
    from .in_torch import AdamW

    check_settings_by_name(ctx, AdamW)
