"""Gradients of attention whose scores' gradients are stored in chunks: NumPy's, in any chunk."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.plan.select import MOST_DISPATCHES
from kerngen.plan.size import evaluate
from kerngen.schedule.flash import chunks
from kerngen.schedule.flash.choices import MOST_IN_CHUNKS
from kerngen.schedule.program import ScheduledStage
from kerngen.source.diagnostic import CompileError
from tests.budget import sampled, several
from tests.compile import built_module
from tests.schedule.attention_cases import (
    CASES,
    CAUSAL_CASE,
    KEPT,
    TILES,
    Array,
    arguments,
)

CHUNK = f"{TILES} chunk(32)"
SMALL = 1 << 12
"""So many stored make several chunks of the heads and queries of small sizes."""

SIZES = ((1, 3, 3, 61, 77, 24, 40), (2, 4, 4, 70, 50, 5, 3), (1, 3, 3, 64, 80, 24, 40))
"""b, h, r, s, t, d, e: of whole vectors with two tiles of columns, and of cut ones."""

FITTING = ("plain", "soft cap", CAUSAL_CASE, "causal by a condition")


def ungrouped(name: str, kept: str, schedule: str = CHUNK) -> str:
    """Return a case's program where each head has keys of its own."""
    text = CASES[name].text(kept).replace(TILES, schedule)
    text = text.replace("[b, r, t", "[b, h, t").replace("g / (h / r)", "g")
    return text.replace("    require r > 0;\n    require h % r == 0;\n", "")


def given_to(name: str, kept: str, sizes: tuple[int, ...]) -> dict[str, Array]:
    """Return the arguments of a case's gradient."""
    case, given = CASES[name], arguments(sizes)
    if kept:
        kept_values = case.forward(given)
        given |= {n: x.astype(np.float32) for n, x in kept_values.items()}
    return {n: x for n, x in given.items() if n != "bias"}


WAYS = [(name, kept) for name in FITTING for kept in (KEPT, "")]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (
            way
            if way == (CAUSAL_CASE, KEPT)
            else pytest.param(*way, marks=pytest.mark.nightly)
        )
        for way in WAYS
    ],
)
def test_gradients_in_chunks_are_numpys(
    ctx: gpu.Context, monkeypatch: pytest.MonkeyPatch, name: str, kept: str
) -> None:
    """What a chunk before has left in memory, as NaN here, is never read."""
    monkeypatch.setattr(chunks, "LEAST_STORED", SMALL)
    monkeypatch.setattr(chunks, "MOST_STORED", SMALL)
    with built_module(ungrouped(name, kept)) as module:
        for sizes in several(SIZES, by_day=1):
            given = given_to(name, kept, sizes)
            wanted = CASES[name].gradients(arguments(sizes))
            tensors = {n: ctx.tensor(x) for n, x in given.items()}
            spoiled = ctx.tensor(np.full_like(given["dy"], np.nan))
            module.df(**{**tensors, "dy": spoiled})
            found = [x.numpy() for x in module.df(**tensors)]
            again = [x.numpy() for x in module.df(**tensors)]
            for mine, same, theirs in zip(found, again, wanted, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5)
                np.testing.assert_array_equal(mine, same)


@cache
def in_chunks(name: str, kept: str = KEPT) -> ScheduledStage:
    """Return the first schedule that the compiler chooses for a case's gradient."""
    text = ungrouped(name, kept).replace("schedule df {", "schedule f {")
    text = text.replace(CHUNK, TILES)
    compiled = compile_text(text, "f.kern")
    (found,) = (p for p in compiled.programs if p.staged.kernel.name == "df")
    return found.choices[0].cases[0].schedule


LENGTHS = (
    (1, 1, 0, 0),
    (1, 1, 1, 1),
    (4, 16, 2048, 2048),
    (1, 32, 4096, 4096),
    (1, 32, 1, 100_000),
    (3, 7, 65_000, 5),
    (1, 1, 131_072, 131_072),
    (4096, 32, 128, 128),
    (7, 9, 2049, 4097),
)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_chunks_are_bounded_and_have_everything(lengths: tuple[int, ...]) -> None:
    b, h, s, t = lengths
    assert b * h * s * t <= MOST_IN_CHUNKS
    variant = in_chunks("plain").variants[-1]
    values = {**dict(zip("bhst", lengths, strict=True)), "d": 64, "e": 64}
    (stored,) = (x for x in variant.scratch if x.name == "score_gradients")
    assert variant.again is not None
    count, length = evaluate(variant.again, values), evaluate(stored.length, values)
    assert length <= chunks.MOST_STORED
    assert count * variant.repeated + 2 <= MOST_DISPATCHES
    assert count * length >= b * h * s * t
    if length:
        rows = -(-max(s, 1) // 64) * 64
        assert count * length <= 4 * max(b * h * t * rows, chunks.MOST_STORED)


@pytest.mark.parametrize("name", sampled(FITTING, 2))
def test_five_products_make_the_gradients(name: str) -> None:
    """Two make the tiles, and with what is stored one each makes a sum."""
    schedule = in_chunks(name)
    assert schedule.label == "flash_micro8x4_chunk1024"
    for variant in schedule.variants:
        *_, makes, takes, _ = (shader.code for shader in variant.shaders)
        assert [makes.count("u.d; first"), takes.count("for (")] == [1, 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            CASES["plain"].text().replace(TILES, CHUNK),
            "no two of its sums have the same weights",
        ),
        (
            ungrouped("a window that leaves rows empty", ""),
            "its mask is no plain triangle",
        ),
        (
            ungrouped("plain", "").replace("chunk(32)", "chunk(48)"),
            "a chunk's queries must be a multiple of tile's keys, 32",
        ),
    ],
)
def test_what_has_no_chunks(text: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compile_text(text, "f.kern")
