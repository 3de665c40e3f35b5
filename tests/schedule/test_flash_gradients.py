"""Gradients of attention by strategy `flash`: they are NumPy's, and no scores are stored."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
import kerngen_kernels.attention
from kerngen.compiler import compile_text
from kerngen.plan.size import symbols
from kerngen.schedule.program import KernelProgram
from tests.budget import several
from tests.compile import built_module
from tests.schedule.attention_cases import (
    CASES,
    CAUSAL_CASE,
    KEPT,
    arguments,
)

NIGHTLY = pytest.mark.nightly
SIZES = ((2, 4, 2, 70, 18, 5, 3), (1, 2, 2, 32, 48, 24, 40))
"""b, h, r, s, t, d, e: those of vectors and whole turns, and such that are not."""

MORE = (
    (1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 7, 7, 5, 3),
    (1, 4, 2, 33, 50, 16, 20),
    (1, 2, 2, 197, 197, 40, 48),
    (1, 6, 3, 1, 300, 64, 64),
    (2, 4, 1, 96, 96, 8, 72),
)

FEW = (("a window that leaves rows empty", ""),)
"""What is run by default: six shaders to compile, in 7 CPU seconds.

Those that are given what is kept have a pass less.
"""

WAYS = [(name, kept) for name in CASES for kept in ("", KEPT)]


@pytest.mark.parametrize(
    ("name", "kept"),
    [way if way in FEW else pytest.param(*way, marks=NIGHTLY) for way in WAYS],
)
def test_gradients_are_numpys(ctx: gpu.Context, name: str, kept: str) -> None:
    with built_module(CASES[name].text(kept)) as module:
        for each in several(SIZES, by_day=1):
            check_gradients(ctx, name, module, each)


@NIGHTLY
@pytest.mark.parametrize(("name", "kept"), WAYS)
def test_gradients_of_more_sizes(ctx: gpu.Context, name: str, kept: str) -> None:
    with built_module(CASES[name].text(kept)) as module:
        for each in MORE:
            check_gradients(ctx, name, module, each)


def check_gradients(
    ctx: gpu.Context, name: str, module: ModuleType, sizes: tuple[int, ...]
) -> None:
    """Compare the gradients of a case with NumPy's."""
    case, given = CASES[name], arguments(sizes)
    wanted = case.gradients(given)
    if "top" in signature(module.df).parameters:
        kept = case.forward(given)
        given |= {name: x.astype(np.float32) for name, x in kept.items()}
    if not case.biased:
        del given["bias"]
    (chosen,) = ctx.choices(module.df, **dict(zip("bhrstde", sizes, strict=True)))
    assert chosen.strategy.startswith("flash")
    found = module.df(**{name: ctx.tensor(x) for name, x in given.items()})
    for which, mine, theirs in zip("qkv", found, wanted, strict=True):
        np.testing.assert_allclose(
            mine.numpy(), theirs, rtol=2e-4, atol=2e-5, err_msg=f"{sizes}, d{which}"
        )


@cache
def derived(kept: str) -> KernelProgram:
    """Return the program of causal gradients, by the schedules of the compiler."""
    text = CASES[CAUSAL_CASE].text(kept).replace("schedule df {", "schedule f {")
    compiled = compile_text(text, "f.kern")
    (found,) = (p for p in compiled.programs if p.staged.kernel.name == "df")
    return found


@pytest.mark.parametrize("kept", ["", KEPT])
def test_no_scores_are_stored(kept: str) -> None:
    (choice,) = derived(kept).choices
    own = {"y", "top", "total"} if kept else set[str]()
    for case in choice.cases[:3]:  # behind them, more than 256 columns
        schedule = case.schedule
        assert schedule.stages[-3:] == ("dq", "dk", "dv")
        tensors = {"q", "k", "v", "dy", "dq", "dk", "dv", "row_numbers"}
        assert schedule.bound == tensors | own
        for variant in schedule.variants:
            (scratch,) = variant.scratch
            assert {"s", "t"} & {*symbols(scratch.length)} == {"s"}


@pytest.mark.parametrize(
    ("kept", "products"),
    [("", [(2, 0), (2, 1), (2, 2)]), (KEPT, [(0, 0), (2, 1), (2, 2)])],
)
def test_each_pass_makes_its_tiles_once(
    kept: str, products: list[tuple[int, int]]
) -> None:
    """Loops over terms make products of queries and keys, those over turns the sums."""
    (choice,) = derived(kept).choices
    schedule = choice.cases[0].schedule
    assert "micro8x4" in schedule.label, "one block of keys for an invocation"
    for variant in schedule.variants:
        found = [
            tuple(
                len(re.findall(rf"for \(var {loop}_?\d* = ", shader.code))
                for loop in ("first", "turn")
            )
            for shader in variant.shaders
        ]
        assert found == products


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_numpys_gradients_are_torchs(name: str) -> None:
    torch: Any = import_module("torch")
    case, given = CASES[name], arguments((2, 4, 2, 33, 18, 5, 3))
    tensors = {name: torch.tensor(x.astype(np.float64)) for name, x in given.items()}
    q, k, v = (tensors[name].requires_grad_() for name in "qkv")
    keys, values = (x.repeat_interleave(2, 1) for x in (k, v))
    mask = torch.tensor(case.mask(np.arange(33)[:, None], np.arange(18), 18 - 33))
    score = q @ keys.mT / np.sqrt(5)
    if np.isfinite(case.cap):
        score = case.cap * torch.tanh(score / case.cap)
    if case.biased:
        score = score + tensors["bias"]
    if case.masked is None:
        some = mask.any(-1, keepdim=True)
        weight = score.masked_fill(~mask & some, -np.inf).softmax(-1) * mask
    else:
        weight = score.masked_fill(~mask, case.masked).softmax(-1)
    (weight @ values).backward(tensors["dy"])
    for mine, theirs in zip(case.gradients(given), (q, k, v), strict=True):
        assert theirs.grad is not None
        np.testing.assert_allclose(mine, theirs.grad.numpy(), rtol=1e-9, atol=1e-12)


TILES = {
    "causal_attention": "flash_tile128x128x128",
    "causal_attention_backward": "flash_micro8x4",
}


@pytest.mark.parametrize("name", ["causal_attention", "causal_attention_backward"])
def test_tiles_with_the_most_keys_come_first(name: str) -> None:
    """Of all heads: their rows never get more keys from one workgroup to the next."""
    folder = Path(kerngen_kernels.attention.__file__).parent / "wgsl" / "attention"
    text = (folder / f"{name}.{TILES[name]}.wgsl").read_text("utf-8")
    places = re.findall(r"let tile_row = (.*) \* (\d+)u;\n", text)
    assert len(places) >= 2
    rows, heads = 8, 3
    sizes = {"tile_rows": rows, "tile_columns": 1, "tile_heads": heads}
    wanted = [row for row in range(rows) for _ in range(heads)]
    for place, _ in places:
        code = place.replace("/", "//").replace("1u", "1")
        found = [eval(code, {**sizes, "group": g}) for g in range(rows * heads)]
        assert found in (wanted[::-1], wanted)
    # Queries go over the keys before them; keys, for dk and dv, over the queries behind them.
    assert any("tile_rows - 1u" in place for place, _ in places)
    last = any("tile_rows - 1u" not in place for place, _ in places)
    assert last == (name == "causal_attention_backward")
