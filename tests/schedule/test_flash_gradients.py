"""Gradients of attention by strategy `flash`: they are NumPy's, and no scores are stored."""

from __future__ import annotations

import re
from collections.abc import Callable
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
SIZES = ((1, 2, 2, 45, 37, 24, 40), (2, 4, 2, 70, 18, 5, 3))
"""b, h, r, s, t, d, e: columns in vectors, with any number of rows, and such that are not."""

MORE = (
    (1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 7, 7, 5, 3),
    (1, 4, 2, 33, 50, 16, 20),
    (1, 2, 2, 32, 48, 24, 40),
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


MASKS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "causal": ("j <= i", lambda i, j: j <= i),
    "reversed": ("j >= i", lambda i, j: j >= i),
    "descending": ("j + i < s", lambda i, j: i + j < 64),
    "causal, up to a length": ("j <= i and j < at", lambda i, j: (j <= i) & (j < 40)),
    "a window": ("j <= i and j > i - 24", lambda i, j: (j <= i) & (j > i - 24)),
    "up to a length": ("j < at", lambda i, j: (j < 40) | (i < 0)),
}
"""Masks of row i and key j, with s = 64 rows and at = 40; and the same by NumPy."""


@pytest.mark.parametrize("mask", MASKS)
def test_tiles_with_the_most_keys_come_first(mask: str) -> None:
    """Of all heads: from one workgroup to the next, tiles don't get more keys."""
    condition, keeps = MASKS[mask]
    text = f"""kernel f(q: f32[h, s, d], k: f32[h, s, d], v: f32[h, s, d], at: i32)
        -> y: f32[h, s, d] {{
        let score[g, i, j] =
            if {condition} {{ sum[p] q[g, i, p] * k[g, j, p] }} else {{ -inf }};
        let top[g, i] = max[j] score[g, i, j];
        let total[g, i] = sum[j] exp(score[g, i, j] - top[g, i]);
        let weight[g, i, j] = exp(score[g, i, j] - top[g, i]) / total[g, i];
        y[g, i, c] = sum[j] weight[g, i, j] * v[g, j, c];
    }}
    schedule f {{ flash tile(16, 64, 32) micro(4, 8) depth(16, 16) }}"""
    (program,) = compile_text(text, "f.kern").programs
    (code,) = (file.text for file in program.files if "let tile_row" in file.text)
    place = re.findall(r"let tile_row = (.*) \* 16u;", code)[0]
    rows, heads = 4, 3
    known = {"tile_rows": rows, "tile_columns": 1, "tile_heads": heads}
    python = place.replace("/", "//").replace("1u", "1")
    order = [eval(python, {**known, "group": g}) for g in range(rows * heads)]
    assert sorted(order) == sorted([*range(rows)] * heads)
    i, j = np.ogrid[:64, :64]
    keys = keeps(i, j).sum(1).reshape(rows, 16).sum(1)
    counts = [int(keys[row]) for row in order]
    assert counts == sorted(counts, reverse=True)


def test_gradients_begin_with_the_longest_tiles() -> None:
    """Of a causal mask: the last queries have the most keys, the first keys most queries."""
    folder = Path(kerngen_kernels.attention.__file__).parent / "wgsl" / "attention"
    name = "causal_attention_backward.flash_micro8x4.wgsl"
    code = (folder / name).read_text("utf-8")
    entries = re.findall(
        r"\n@compute.*?\nfn (\w+)\(.*?let tile_row = (.*?);\n", code, re.DOTALL
    )
    assert {entry for entry, _ in entries} >= {"dk_dv", "dq_"}
    for entry, place in entries:
        assert ("tile_rows - 1u" in place) == ("dk_dv" not in entry), entry
        assert place.count("group / tile_columns / tile_heads") == 1
