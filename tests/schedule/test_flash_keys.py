"""Strategy `flash` with any number of keys: they are read in vectors, the last tile is cut."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.compile import built_module
from tests.schedule.attention_cases import TILES, Array

TEXT = """
kernel f(q: f32[s, d], k: f32[t, d], v: f32[t, e], of_both: f32[s, t], of_key: f32[t])
    -> y: f32[s, e] {
    let dot[i, j] = sum[p] q[i, p] * k[j, p];
    let score[i, j] = SCORE;
    let top[i] = max[j] score[i, j];
    let total[i] = sum[j] exp(score[i, j] - top[i]);
    y[i, c] = (sum[j] exp(score[i, j] - top[i]) * v[j, c]) / total[i];
}
kernel df = gradient of f by q, k, v;
schedule f, df { TILES }
"""
KEYS = (1, 3, 16, 21, 33, 45)
"""Fewer than a turn of 8, whole turns, and one key or several in the last tile of 32."""


def scores(name: str, dot: Array, of_both: Array, of_key: Array) -> Array:
    """Return the scores of `SCORES` in NumPy."""
    match name:
        case "of both":
            return dot + of_both
        case "of the key":
            return dot * of_key
        case "of the key before":
            return dot + np.concatenate(([0.0], of_key[:-1]))
        case _:
            return dot


SCORES = {
    "plain": "dot[i, j]",
    "of both": "dot[i, j] + of_both[i, j]",
    "of the key": "dot[i, j] * of_key[j]",
    "of the key before": "dot[i, j] + (if j > 0 { of_key[j - 1] } else { 0.0 })",
}
"""Scores, by how they read tensors along the keys."""


def given(keys: int) -> dict[str, Array]:
    """Return arguments with 19 queries, 16 terms and 40 columns."""
    rng = np.random.default_rng(keys)
    shapes: dict[str, tuple[int, ...]] = {
        "q": (19, 16),
        "k": (keys, 16),
        "v": (keys, 40),
        "of_both": (19, keys),
        "of_key": (keys,),
    }
    return {
        name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()
    }


def weights(name: str, arrays: dict[str, Array]) -> tuple[Array, Array]:
    """Return the softmax of the scores in float64, and what they are by the products."""
    q, k, *_, of_both, of_key = (x.astype(np.float64) for x in arrays.values())
    score = scores(name, q @ k.T, of_both, of_key)
    weight = np.exp(score - score.max(-1, keepdims=True))
    slope = of_key if name == "of the key" else np.ones(len(of_key))
    return weight / weight.sum(-1, keepdims=True), slope


def module_of(name: str) -> Any:
    """Return the context manager of the built module of a score."""
    return built_module(TEXT.replace("SCORE", SCORES[name]).replace("TILES", TILES))


def check_vectors(ctx: gpu.Context, function: Any, keys: int) -> None:
    """Assert that the shaders for whole vectors are chosen."""
    (chosen,) = ctx.choices(function, s=19, t=keys, d=16, e=40)
    assert chosen.strategy.startswith("flash")
    assert not any("edge" in shader for shader in chosen.shaders)


@pytest.mark.parametrize("name", SCORES)
def test_any_number_of_keys_is_read_in_vectors(ctx: gpu.Context, name: str) -> None:
    with module_of(name) as module:
        for keys in KEYS:
            check_vectors(ctx, module.f, keys)
            arrays = given(keys)
            found = module.f(*map(ctx.tensor, arrays.values())).numpy()
            wanted = weights(name, arrays)[0] @ arrays["v"].astype(np.float64)
            np.testing.assert_allclose(
                found, wanted, rtol=2e-5, atol=2e-6, err_msg=f"{keys}"
            )


@pytest.mark.parametrize("keys", [1, 21, 45])
def test_the_last_key_counts_once(ctx: gpu.Context, keys: int) -> None:
    """It is read for keys behind it, too: as 0 times infinity it would spoil results."""
    arrays = given(keys)
    arrays["v"][-1, 3] = np.inf
    with module_of("plain") as module:
        found = module.f(*map(ctx.tensor, arrays.values())).numpy()
    assert (found[:, 3] == np.inf).all()
    assert np.isfinite(np.delete(found, 3, 1)).all()


@pytest.mark.parametrize(
    "name",
    [
        "of the key",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in SCORES
            if name != "of the key"
        ),
    ],
)
def test_gradients_of_any_number_of_keys(ctx: gpu.Context, name: str) -> None:
    with module_of(name) as module:
        for keys in (3, 45):
            check_vectors(ctx, module.df, keys)
            arrays = given(keys)
            dy = np.random.default_rng(1).standard_normal((19, 40), np.float32)
            takes = signature(module.df).parameters
            tensors = {n: ctx.tensor(x) for n, x in (arrays | {"dy": dy}).items()}
            found = module.df(**{n: x for n, x in tensors.items() if n in takes})
            weight, slope = weights(name, arrays)
            q, k, v = (arrays[n].astype(np.float64) for n in "qkv")
            dweight = dy @ v.T
            dot = weight * (dweight - (weight * dweight).sum(-1, keepdims=True)) * slope
            for mine, wanted in zip(
                found, (dot @ k, dot.T @ q, weight.T @ dy), strict=True
            ):
                np.testing.assert_allclose(
                    mine.numpy(), wanted, rtol=2e-4, atol=2e-5, err_msg=f"{keys}"
                )


def test_what_depends_on_keys_alone_is_loaded_once_for_all_rows() -> None:
    """Four rows have the same four keys: four reads, in each entry point of the shader."""
    text = TEXT.replace("SCORE", SCORES["of the key"]).replace("TILES", TILES)
    program = compile_text(text, "f.kern").programs[0]
    for variant in program.stages[0].schedules[0].variants:
        (shader,) = variant.shaders
        assert len(re.findall(r"of_key(_edge)?\[", shader.code)) == 4
