"""Derived gradients are PyTorch's, both in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.gradient.cases import case_of

pytestmark = pytest.mark.torch

CLOSE = 1e-10
"""Of the largest element."""


KERNELS = [
    ("attention", "attention causal_attention grouped_query_attention rotary"),
    ("conv", "conv2d"),
    ("elementwise", "gelu gelu_tanh swish"),
    ("image", "max_pool2d avg_pool2d"),
    ("loss", "binary_cross_entropy huber mean_cross_entropy"),
    ("norm", "layernorm rmsnorm groupnorm"),
    ("softmax", "softmax log_softmax"),
    ("layers", "replicated_conv product_diagonal blocks kronecker bilinear_form"),
    ("layers", "low_rank gated running_logsumexp cycles segment_softmax triplets"),
    ("layers", "rotated exclusive_products masked_layer outer_sum payload circular"),
    ("layers", "safe_rows replicated_conv2d reflected_conv1d looked_up"),
    ("programs", "pixel_shuffle_by_2 pixel_unshuffle_by_2 channel_shuffle_by_4"),
]


@pytest.mark.parametrize(
    ("file", "name"), [(file, n) for file, names in KERNELS for n in names.split()]
)
def test_gradients_are_torchs(file: str, name: str) -> None:
    from tests.gradient.in_torch import BY_TENSORS_ALONE, IN_TORCH, gradients

    case, function = case_of(file, name), IN_TORCH[name]
    if name in BY_TENSORS_ALONE:
        tensors = {tensor.name for tensor in case.kernel.tensors}
        case = replace(case, by=tuple(x for x in case.by if x in tensors))
    found = case.results()
    (weight,) = case.weights(case.forward_results())
    expected = gradients(function, case.arguments(), case.by, weight)
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(float(np.abs(theirs).max()), 1.0)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE * scale)
