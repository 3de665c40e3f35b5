"""Random numbers are Random123's, and distributed as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kerngen.runtime import Context, f32
from kerngen_kernels import random

from .oracles_numbers import philox

KNOWN = (
    ((0x00000000, 0x00000000, 0x00000000), (0xFF1DAE59, 0x6CD10DF2)),
    ((0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF), (0x2C3F628B, 0xAB4FD7AD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E), (0xDD7CE038, 0xF62A4C12)),
)
"""Counter and key, and what philox2x32 10 makes of them: Random123's kat_vectors."""

MANY = 1 << 16


@pytest.mark.parametrize(("counter_and_key", "words"), KNOWN)
def test_known_answers(
    ctx: Context, counter_and_key: tuple[int, int, int], words: tuple[int, int]
) -> None:
    counter, stream, key = counter_and_key
    assert philox(*counter_and_key) == words
    bits = random.random_bits(count=1, seed=key, offset=counter, stream=stream, ctx=ctx)
    assert bits.numpy().tolist() == [words[0]]


def test_offsets_go_on(ctx: Context) -> None:
    whole = random.uniform(count=100, seed=3, ctx=ctx).numpy()
    rest = random.uniform(count=40, seed=3, offset=60, ctx=ctx).numpy()
    assert rest.tolist() == whole[60:].tolist()


def test_moments(ctx: Context) -> None:
    """Within five standard errors, for this seed."""
    x = random.uniform(count=MANY, seed=7, ctx=ctx).numpy().astype(np.float64)
    assert 0 <= x.min() < 1e-3
    assert 1 - 1e-3 < x.max() < 1
    assert abs(x.mean() - 0.5) < 5 * math.sqrt(1 / 12 / MANY)
    z = random.normal(count=MANY, seed=7, mean=1.0, deviation=2.0, ctx=ctx).numpy()
    standard = (z.astype(np.float64) - 1) / 2
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        error = np.std(standard**power) / math.sqrt(MANY)
        assert abs((standard**power).mean() - moment) < 5 * error


def test_the_gradient_of_dropout_drops_the_same(ctx: Context) -> None:
    x = ctx.vector(np.ones(5000), f32)
    y = random.dropout(x, rate=0.25, seed=1).numpy()
    assert y.tolist() == random.dropout(x, rate=0.25, seed=1).numpy().tolist()
    assert set(y.tolist()) == {0.0, float(np.float32(4 / 3))}
    assert abs((y == 0).mean() - 0.25) < 0.03
