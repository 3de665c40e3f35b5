"""Strategy `flash`: what it is recognised in, and that it gives what NumPy gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.schedule.flash.tiling import ROW_COLUMNS
from kerngen.source.diagnostic import CompileError
from kerngen_kernels import decoder
from tests.compile import built_module

Array: TypeAlias = NDArray[Any]

NIGHTLY = pytest.mark.nightly
LOWEST = -3.4028234663852886e38
TILES = "flash tile(16, 32, 32) micro(4, 4) depth(8, 8)"
"""Small ones: they compile in a second, and sizes below are of several."""

DEEP = "flash tile(16, 32, 32) micro(4, 4) depth(32, 8)"
"""More terms at a time than weights, as the tiles for 128 columns have on large adapters."""

FEW = "flash tile(16, 32, 32) rows(4)"

ATTENTION = """
const LOWEST: f32 = -3.4028234663852886e38;
kernel f(q: f32[b, h, s, d], k: f32[b, r, t, d], v: f32[b, r, t, e]) -> y: f32[b, h, s, e] {
    host scale = 1 / sqrt(d);
    let dot[n, g, i, j] = sum[p] q[n, g, i, p] * k[n, g / (h / r), j, p];
    let score[n, g, i, j] = SCORE;
    let top[n, g, i] = max[jWHEN] score[n, g, i, j];
    let total[n, g, i] = sum[jWHEN] exp(score[n, g, i, j] - top[n, g, i]);
    RESULT
}
schedule f { TILES }
"""
WEIGHTS = """let weight[n, g, i, j] = exp(score[n, g, i, j] - top[n, g, i]) / total[n, g, i];
    y[n, g, i, c] = sum[jWHEN] weight[n, g, i, j] * v[n, g / (h / r), j, c];"""
AFTER = """y[n, g, i, c] = sum[jWHEN] exp(score[n, g, i, j] - top[n, g, i])
        * v[n, g / (h / r), j, c] / total[n, g, i];"""
OUTSIDE = """y[n, g, i, c] = (sum[jWHEN] v[n, g / (h / r), j, c]
        * exp(score[n, g, i, j] - top[n, g, i])) / total[n, g, i] + 1.0;"""


def counted(count: int) -> Array:
    """Return 0, 1 and so on."""
    return np.arange(count, dtype=np.int64)


@final
@dataclass(frozen=True)
class Places:
    """The places of queries, i, and of keys, j; the last of both are `offset` apart."""

    i: Array
    j: Array
    offset: int


@final
@dataclass(frozen=True)
class Case:
    """A form of attention: its score, conditions and result, and what they mean.

    `masked` is what a score is where the mask is false: None leaves the key out.
    """

    score: str = "scale * dot[n, g, i, j]"
    when: str = ""
    result: str = WEIGHTS
    scored: Callable[[Array], Array] = lambda score: score
    mask: Callable[[Places], Array] = lambda at: (at.i >= 0) & (at.j >= 0)
    masked: float | None = None
    plus: float = 0.0

    def text(self, tiles: str) -> str:
        """The program, with a schedule."""
        text = ATTENTION.replace("RESULT", self.result).replace("SCORE", self.score)
        when = f" when {self.when}" if self.when else ""
        return text.replace("WHEN", when).replace("TILES", tiles)

    def meaning(self, q: Array, k: Array, v: Array) -> Array:
        """Return the result in float64."""
        q, k, v = (x.astype(np.float64) for x in (q, k, v))
        heads = q.shape[1] // k.shape[1]
        k, v = (np.repeat(x, heads, axis=1) for x in (k, v))
        s, t = q.shape[2], k.shape[2]
        mask = self.mask(Places(counted(s)[:, None], counted(t), t - s))
        score = self.scored(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        score = np.where(mask, score, -np.inf if self.masked is None else self.masked)
        with np.errstate(invalid="ignore"):
            weight = np.exp(score - score.max(-1, keepdims=True))
            weight = weight / weight.sum(-1, keepdims=True)
        if self.when:
            weight = np.where(mask, weight, 0.0)
        result: Array = weight @ v + self.plus
        return result


def sloped(score: Array) -> Array:
    """Take a tenth from scores for every place between query and key."""
    i, j = (counted(n) for n in score.shape[-2:])
    less: Array = score - 0.1 * np.abs(i[:, None] - j)
    return less


CAUSAL = "j <= i + (t - s)"
WINDOW = "j <= i and j > i - 20"
CASES = {
    "plain": Case(),
    "division in the sum": Case(result=AFTER),
    "division after the sum": Case(result=OUTSIDE, plus=1.0),
    "soft cap": Case(
        "5.0 * tanh(scale * dot[n, g, i, j] / 5.0)",
        scored=lambda score: 5.0 * np.tanh(score / 5.0),
    ),
    "slopes": Case(
        "scale * dot[n, g, i, j] - 0.1 * f32(abs(i - j))",
        scored=sloped,
    ),
    "causal": Case(
        f"if {CAUSAL} {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda at: at.j <= at.i + at.offset,
        masked=LOWEST,
    ),
    "causal by a condition": Case(
        when=CAUSAL, mask=lambda at: at.j <= at.i + at.offset
    ),
    "a window": Case(
        when=WINDOW, result=AFTER, mask=lambda at: (at.j <= at.i) & (at.j > at.i - 20)
    ),
    "a window of finite scores": Case(
        f"if {WINDOW} {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda at: (at.j <= at.i) & (at.j > at.i - 20),
        masked=LOWEST,
    ),
    "keys after the query": Case(
        f"if not ({CAUSAL}) {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda at: at.j > at.i + at.offset,
        masked=LOWEST,
    ),
    "a mask that skips nothing": Case(
        when="(i + j) % 3 != 0", mask=lambda at: (at.i + at.j) % 3 != 0
    ),
}
SIZES = (
    # b, h, r, s, t, d, e
    (1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 7, 7, 5, 3),
    (1, 4, 2, 33, 50, 16, 20),
    (1, 2, 2, 48, 64, 24, 40),
    (1, 1, 1, 50, 33, 8, 4),
)
MORE = (
    (1, 2, 2, 197, 197, 40, 48),
    (1, 1, 1, 300, 300, 64, 130),
    (1, 6, 3, 1, 300, 64, 64),
)


def arguments(sizes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return queries, keys and values."""
    b, h, r, s, t, d, e = sizes
    rng = np.random.default_rng(s + t)
    shapes = (b, h, s, d), (b, r, t, d), (b, r, t, e)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    return q, k, v


EVERY = [
    pytest.param(
        name,
        tiles,
        sizes,
        id=f"{name}-{tiles}-{kind}",
        marks=[] if (number + turn) % 7 == 0 and kind == "some" else [NIGHTLY],
    )
    for number, name in enumerate(CASES)
    for turn, tiles in enumerate((TILES, FEW, DEEP))
    for kind, sizes in (("some", SIZES), ("more", MORE))
]
"""By default few cases are run, each in one of the three ways."""


@pytest.mark.parametrize(("name", "tiles", "sizes"), EVERY)
def test_one_pass_gives_what_numpy_gives(
    ctx: gpu.Context, name: str, tiles: str, sizes: tuple[tuple[int, ...], ...]
) -> None:
    case = CASES[name]
    with built_module(case.text(tiles)) as module:
        for each in sizes:
            given = arguments(each)
            dims = dict(zip("bhrstde", each, strict=True))
            (chosen,) = ctx.choices(module.f, **dims)
            assert chosen.strategy.startswith("flash")
            found = module.f(*map(ctx.tensor, given)).numpy()
            wanted = case.meaning(*given)
            np.testing.assert_allclose(
                found, wanted, rtol=2e-5, atol=2e-6, err_msg=f"{name}, {each}"
            )


@pytest.mark.parametrize("columns", ROW_COLUMNS)
def test_few_queries_have_all_rows_in_tiles_of_any_columns(
    ctx: gpu.Context, columns: int
) -> None:
    """Four rows and one more, and columns in a tile and a part of one."""
    case = CASES["plain"]
    with built_module(case.text(f"flash tile(16, 32, {columns}) rows(4)")) as module:
        for more in (3, 4):  # Single numbers, and vectors.
            given = arguments((1, 2, 1, 5, 131, 20, columns + more))
            found = module.f(*map(ctx.tensor, given)).numpy()
            wanted = case.meaning(*given)
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_tiles_for_few_queries_have_some_numbers_of_columns() -> None:
    text = CASES["plain"].text("flash tile(16, 32, 256) rows(4)")
    with pytest.raises(CompileError, match="one of 32, 64, 128 columns"):
        compile_text(text, "f.kern")


def test_it_runs_all_stages_and_keeps_no_scores() -> None:
    (program,) = compile_text(CASES["plain"].text(TILES), "f.kern").programs
    schedule = program.stages[0].schedules[0]
    assert schedule.stages == ("dot", "top", "total", "weight", "y")
    assert schedule.bound == {"q", "k", "v", "y"}


def test_sizes_choose_rows_or_tiles_and_the_same_bits_come_each_time(
    ctx: gpu.Context,
) -> None:
    text = CASES["causal"].text("flash").replace("schedule f { flash }", "")
    with built_module(text) as module:
        sizes = {"b": 1, "h": 4, "r": 2, "t": 300, "d": 16, "e": 16}
        for s, strategy in (
            (1, "flash_tile64x64x64_rows4"),
            (64, "flash_tile32x128x64_micro4x8"),
        ):
            (chosen,) = ctx.choices(module.f, **sizes, s=s)
            assert chosen.strategy == strategy
        given = [ctx.tensor(x) for x in arguments((1, 4, 2, 1, 300, 16, 16))]
        first = module.f(*given).numpy()
        for _ in range(2):
            np.testing.assert_array_equal(module.f(*given).numpy(), first)


KEPT = """
kernel f(q: f32[s, d], k: f32[t, d], v: f32[t, e])
    -> y: f32[s, e], top: f32[s], all: f32[s] {
    let score[i, j] = sum[p] q[i, p] * k[j, p];
    top[i] = max[j when j <= i] score[i, j];
    all[i] = sum[j when j <= i] exp(score[i, j] - top[i]);
    y[i, c] = sum[j when j <= i] exp(score[i, j] - top[i]) * v[j, c] / all[i];
}
schedule f { TILES }
"""


@pytest.mark.parametrize("tiles", [pytest.param(TILES, marks=NIGHTLY), FEW])
def test_what_is_kept_of_each_row(ctx: gpu.Context, tiles: str) -> None:
    q, k, v = (x[0, 0] for x in arguments((1, 1, 1, 40, 37, 8, 70)))
    score = q.astype(np.float64) @ k.T.astype(np.float64)
    score = np.where(np.arange(37) <= np.arange(40)[:, None], score, -np.inf)
    top = score.max(1)
    weight = np.exp(score - top[:, None])
    with built_module(KEPT.replace("TILES", tiles)) as module:
        y, highest, total = module.f(*map(ctx.tensor, (q, k, v)))
        np.testing.assert_allclose(highest.numpy(), top, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(total.numpy(), weight.sum(1), rtol=1e-5)
        wanted = weight @ v / weight.sum(1)[:, None]
        np.testing.assert_allclose(y.numpy(), wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("tiles", [TILES, FEW])
def test_rows_without_columns_are_kept(ctx: gpu.Context, tiles: str) -> None:
    """No invocation has a column, so that another schedule writes what is kept."""
    q, k, v = (x[0, 0] for x in arguments((1, 1, 1, 6, 9, 8, 0)))
    score = np.where(np.tri(6, 9, dtype=bool), q.astype(float) @ k.T, -np.inf)
    with built_module(KEPT.replace("TILES", tiles)) as module:
        y, highest, total = module.f(*map(ctx.tensor, (q, k, v)))
        assert y.numpy().shape == (6, 0)
        np.testing.assert_allclose(highest.numpy(), score.max(1), rtol=1e-5)
        weight = np.exp(score - score.max(1)[:, None])
        np.testing.assert_allclose(total.numpy(), weight.sum(1), rtol=1e-5)


@pytest.mark.parametrize("keys", [5, 70, 600])
def test_an_infinite_value_of_the_last_part(ctx: gpu.Context, keys: int) -> None:
    """Few queries: parts past the last one are not added, not even as 0 times infinity."""
    case = CASES["plain"]
    q, k, v = arguments((1, 1, 1, 1, keys, 8, 8))
    v[..., -1, 3] = np.inf
    with built_module(case.text(FEW)) as module:
        found = module.f(*map(ctx.tensor, (q, k, v))).numpy()
    np.testing.assert_allclose(found, case.meaning(q, k, v), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("order", [1, -1])
def test_many_parts_are_joined(ctx: gpu.Context, order: int) -> None:
    """A lane joins parts in several turns: the largest score rises in each, or in none."""
    case = CASES["plain"]
    q, k, v = arguments((1, 1, 1, 1, 2500, 8, 8))
    q[:] = 1.0
    k[:] = np.linspace(-2.0, 2.0, 2500, dtype=np.float32)[::order, None]
    with built_module(case.text(FEW)) as module:
        found = module.f(*map(ctx.tensor, (q, k, v))).numpy()
    np.testing.assert_allclose(found, case.meaning(q, k, v), rtol=2e-5, atol=2e-6)


def test_rows_without_keys(ctx: gpu.Context) -> None:
    """Nothing is the largest of no scores, and no number is 0 / 0."""
    text = KEPT.replace("TILES", TILES).replace("j <= i", "j + 5 <= i")
    q, k, v = (x[0, 0] for x in arguments((1, 1, 1, 40, 37, 8, 20)))
    term = "exp(score[i, j] - top[i]) * v[j, c] / all[i]"
    inside = text.replace(term, f"({term})")
    assert inside != text
    for each, nothing in ((text, np.nan), (inside, 0.0)):
        with built_module(each) as module:
            y, top, total = (x.numpy() for x in module.f(*map(ctx.tensor, (q, k, v))))
            assert (top[:5] == -np.inf).all()
            assert (total[:5] == 0).all()
            np.testing.assert_array_equal(y[:5], np.full((5, 20), nothing))
            assert np.isfinite(y[5:]).all()


GUARDED = """
kernel f(q: f32[s, d], k: f32[t, d], v: f32[t, e], keep: u32[t]) -> y: f32[s, e] {
    let score[i, j] = sum[p] q[i, p] * k[j, p];
    let top[i] = max[j when keep[j] != 0 and j <= i] score[i, j];
    let weight[i, j] = WEIGHT;
    let total[i] = sum[j] weight[i, j];
    y[i, c] = RESULT;
}
schedule f { TILES }
"""
SEEN = "keep[j] != 0 and j <= i"
OF_ROWS = f"if top[i] > -inf and {SEEN} {{ exp(score[i, j] - top[i]) }} else {{ 0.0 }}"
NESTED = (
    f"if top[i] > -inf {{ if {SEEN} {{ exp(score[i, j] - top[i]) }} else {{ 0.0 }} }} "
    "else { 0.0 }"
)
TOTALLED = (
    "if total[i] > 0.0 { (sum[j] weight[i, j] * v[j, c]) / total[i] } else { 0.0 }"
)
EACH = "sum[j] (if total[i] > 0.0 { weight[i, j] / total[i] } else { 0.0 }) * v[j, c]"
UNGUARDED = "(sum[j] weight[i, j] * v[j, c]) / total[i]"


@pytest.mark.parametrize(
    ("weight", "result", "nothing", "tiles"),
    [
        (OF_ROWS, TOTALLED, 0.0, TILES),
        (NESTED, EACH, 0.0, FEW),
        pytest.param(OF_ROWS, UNGUARDED, np.nan, TILES, marks=NIGHTLY),
    ],
)
def test_conditions_on_a_row(
    ctx: gpu.Context, weight: str, result: str, nothing: float, tiles: str
) -> None:
    """`if top > -inf` decides about all of a row: one that sees no key is 0, not NaN."""
    text = GUARDED.replace("WEIGHT", weight).replace("RESULT", result)
    q, k, v = (x[0, 0] for x in arguments((1, 1, 1, 40, 37, 8, 20)))
    keep = (np.arange(37) > 6).astype(np.uint32)
    seen = (keep != 0) & (np.arange(37) <= np.arange(40)[:, None])
    score = np.where(seen, q.astype(np.float64) @ k.T, -np.inf)[7:]
    exact = np.exp(score - score.max(1, keepdims=True))
    with built_module(text.replace("TILES", tiles)) as module:
        (chosen,) = ctx.choices(module.f, s=40, t=37, d=8, e=20)
        assert chosen.strategy.startswith("flash")
        y = module.f(*map(ctx.tensor, (q, k, v, keep))).numpy()
        np.testing.assert_array_equal(y[:7], np.full((7, 20), nothing, np.float32))
        wanted = exact @ v / exact.sum(1, keepdims=True)
        np.testing.assert_allclose(y[7:], wanted, rtol=2e-5, atol=2e-6)


SCORE = "let score[i, j] = sum[p] q[i, p] * k[j, p];"
TOP = "let top[i] = max[j] score[i, j];"
OTHERS = {
    "no softmax": ("y[i, c] = sum[j] score[i, j] * v[j, c];", "is not of exp"),
    "no maximum": (
        """let all[i] = sum[j] exp(score[i, j]);
        y[i, c] = sum[j] (exp(score[i, j]) / all[i] * v[j, c]);""",
        "is not of exp",
    ),
    "another score": (
        TOP + "y[i, c] = sum[j] exp(2.0 * score[i, j] - top[i]) * v[j, c];",
        "is not of exp",
    ),
    "values of each row": (
        TOP + "y[i, c] = sum[j] exp(score[i, j] - top[i]) * (v[j, c] + q[i, 0]);",
        "depends on the row",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_attention(name: str) -> None:
    text, reason = OTHERS[name]
    source = f"""kernel f(q: f32[s, d], k: f32[t, d], v: f32[t, e]) -> y: f32[s, e] {{
        {SCORE} {text}
    }}"""
    (program,) = compile_text(source, "f.kern").programs
    assert reason in dict(program.stages[0].others)["flash"]


BIASED = """
kernel f(
    q: f16[b, s, h, d], k: f16[b, t, h, d], v: f16[b, t, h, e],
    bias: f32[h, s, t], keep: u32[b, t],
) -> y: f32[b, s, h, e] {
    let score[n, i, g, j] = (sum[p] q[n, i, g, p] * k[n, j, g, p]) + bias[g, i, j];
    let top[n, i, g] = max[j when keep[n, j] != 0] score[n, i, g, j];
    let total[n, i, g] = sum[j when keep[n, j] != 0] exp(score[n, i, g, j] - top[n, i, g]);
    let weight[n, i, g, j] = exp(score[n, i, g, j] - top[n, i, g]) / total[n, i, g];
    y[n, i, g, c] = sum[j when keep[n, j] != 0] weight[n, i, g, j] * v[n, j, g, c];
}
schedule f { TILES }
"""


@pytest.mark.parametrize("tiles", [TILES, pytest.param(FEW, marks=NIGHTLY)])
def test_a_bias_and_keys_that_are_left_out(ctx: gpu.Context, tiles: str) -> None:
    rng = np.random.default_rng(3)
    with built_module(BIASED.replace("TILES", tiles)) as module:
        for b, s, h, t, d, e in ((2, 5, 3, 37, 7, 9), (1, 20, 2, 48, 16, 8)):
            q, k, v = (
                rng.standard_normal(shape).astype(np.float16)
                for shape in ((b, s, h, d), (b, t, h, d), (b, t, h, e))
            )
            bias = rng.standard_normal((h, s, t), dtype=np.float32)
            keep = rng.integers(0, 2, (b, t), dtype=np.uint32)
            v[keep == 0] = np.nan
            score = np.einsum(
                "bshd,bthd->bhst", q.astype(np.float64), k.astype(np.float64)
            )
            score = np.where(keep[:, None, None] != 0, score + bias, -np.inf)
            weight = np.exp(score - score.max(-1, keepdims=True))
            weight /= weight.sum(-1, keepdims=True)
            held = np.nan_to_num(v.astype(np.float64))
            wanted = np.einsum("bhst,bthe->bshe", weight, held)
            given = [ctx.tensor(x) for x in (q, k, v)]
            found = module.f(*given, ctx.tensor(bias), ctx.tensor(keep)).numpy()
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


ITSELF = """
kernel f(x: f32[n, n]) -> y: f32[n, n] {
    let score[a, i] = sum[p] x[a, p] * x[i, p];
    let top[i] = max[j] score[i, j];
    let all[k] = sum[i] exp(score[k, i] - top[k]);
    y[j, i] = (sum[a] x[a, i] * exp(score[j, a] - top[j])) / all[j];
}
schedule f { TILES }
"""


@pytest.mark.parametrize("tiles", [pytest.param(TILES, marks=NIGHTLY), FEW])
def test_one_tensor_and_names_that_change(ctx: gpu.Context, tiles: str) -> None:
    with built_module(ITSELF.replace("TILES", tiles)) as module:
        for n in (1, 24, 37):
            x = np.random.default_rng(n).standard_normal((n, n), dtype=np.float32)
            score = x.astype(np.float64) @ x.T
            weight = np.exp(score - score.max(-1, keepdims=True))
            wanted = weight @ x / weight.sum(-1, keepdims=True)
            found = module.f(ctx.tensor(x)).numpy()
            np.testing.assert_allclose(found, wanted, rtol=5e-5, atol=5e-6)


CACHE = """
kernel f(q: f32[h, s, d], k: f32[h, t, d], v: f32[h, t, e], first: i32) -> y: f32[h, s, e] {
    let score[g, i, j] = sum[p] q[g, i, p] * k[g, j, p];
    let top[g, i] = max[j when j <= i + first] score[g, i, j];
    let total[g, i] = sum[j when j <= i + first] exp(score[g, i, j] - top[g, i]);
    let weight[g, i, j] = exp(score[g, i, j] - top[g, i]) / total[g, i];
    y[g, i, c] = sum[j when j <= i + first] weight[g, i, j] * v[g, j, c];
}
schedule f { TILES }
"""


@pytest.mark.parametrize(
    ("place", "tiles"),
    [
        ("i32[]", FEW),
        pytest.param("i32", TILES, marks=NIGHTLY),
        pytest.param("i32", FEW, marks=NIGHTLY),
        pytest.param("i32[]", TILES, marks=NIGHTLY),
    ],
)
def test_what_is_behind_the_last_key_is_not_used(
    ctx: gpu.Context, tiles: str, place: str
) -> None:
    """Whether the host has the place of the first query, or the device."""
    text = CACHE.replace("TILES", tiles).replace("first: i32)", f"first: {place})")
    (program,) = compile_text(text, "f.kern").programs
    assert all("< end;" in s.code for s in program.shaders if "join" not in s.stem)
    with built_module(text) as module:
        for s, t, filled in ((1, 64, 21), (1, 50, 50), (3, 37, 11)):
            q, k, v = (x[0] for x in arguments((1, 2, 2, s, t, 8, 12)))
            k[:, filled:] = v[:, filled:] = np.nan
            score = np.einsum("hsd,htd->hst", q, k).astype(np.float64)
            seen = np.arange(t) <= np.arange(s)[:, None] + filled - s
            score = np.where(seen, score, -np.inf)
            weight = np.exp(score - score.max(-1, keepdims=True))
            weight /= weight.sum(-1, keepdims=True)
            wanted = weight @ np.nan_to_num(v)
            given = [*map(ctx.tensor, (q, k, v))]
            first: Any = filled - s
            if place == "i32[]":
                first = ctx.tensor(np.array(first, np.int32))
            found = module.f(*given, first=first).numpy()
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_values_of_keys_that_few_rows_leave_out_may_be_no_numbers(
    ctx: gpu.Context,
) -> None:
    case = CASES["causal by a condition"]
    q, k, v = arguments((1, 4, 2, 7, 40, 8, 12))
    v[:, :, 36] = np.nan
    with built_module(case.text(FEW)) as module:
        found = module.f(*map(ctx.tensor, (q, k, v))).numpy()
    wanted = case.meaning(q, k, np.nan_to_num(v))
    np.testing.assert_allclose(found[:, :, :3], wanted[:, :, :3], rtol=2e-5, atol=2e-6)
    assert np.isnan(found[:, :, 3:]).all()


WRAPPING = (2**31 - 1, 2**31 - 2, 2**31 - 17)
"""Places of the first query: some rows later `first + i` is negative."""


@pytest.mark.parametrize(
    ("rows", "place", "tiles"), [(3, "i32[]", FEW), (40, "i32", TILES)]
)
def test_positions_that_wrap(
    ctx: gpu.Context, rows: int, place: str, tiles: str
) -> None:
    """A row behind the wrap has no keys, and so 0; those before have all."""
    text = CACHE.replace("TILES", tiles).replace("first: i32)", f"first: {place})")
    q, k, v = (x[0] for x in arguments((1, 2, 2, rows, 70, 8, 8)))
    score = np.einsum("hip,hjp->hij", q, k).astype(np.float64)
    weight = np.exp(score - score.max(-1, keepdims=True))
    whole = weight @ v / weight.sum(-1, keepdims=True)
    given = [*map(ctx.tensor, (q, k, v))]
    with built_module(text) as module:
        for at in WRAPPING:
            first: Any = at
            if place == "i32[]":
                first = ctx.tensor(np.array(at, np.int32))
            y = module.f(*given, first=first).numpy()
            kept = (np.arange(rows) + at < 2**31)[:, None]
            np.testing.assert_allclose(y, np.where(kept, whole, 0), atol=1e-5)


@NIGHTLY
@pytest.mark.parametrize("rows", [3, 40])
def test_positions_of_a_decoder_that_wrap(ctx: gpu.Context, rows: int) -> None:
    """The standard kernel, by the tiles that are chosen for it: no keys give 0."""
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((n, 2, 8), np.float32) for n in (rows, 70, 70))
    score = np.einsum("ihp,jhp->hij", q, k) / math.sqrt(8)
    weight = np.exp(score - score.max(-1, keepdims=True))
    whole = np.einsum("hij,jhc->ihc", weight / weight.sum(-1, keepdims=True), v)
    q_, k_, v_ = (ctx.tensor(x) for x in (q, k, v))
    for at in WRAPPING:
        y = decoder.cached_attention(q_, k_, v_, ctx.tensor(np.array(at, np.int32)))
        kept = (np.arange(rows) + at < 2**31)[:, None, None]
        np.testing.assert_allclose(y.numpy(), np.where(kept, whole, 0), atol=1e-5)
