"""What a kernel requires of a call: refused calls, and shaders without needless care."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerngen.compiler import compile_text
from kerngen.plan.read import read_plan
from kerngen.runtime import ArgumentError, Context, Error, ShapeError, f32
from kerngen.runtime.calls.kernel import Kernel
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.meaning.programs import Subject
from tests.compile import built_module, checked, kernels_in

SOURCE = """
const WIDE: u32 = 64;

kernel lined(x: f32[n, d], turn: u32) -> y: f32[n, d] {
    require d % 8 == 0 and turn < 4;
    require n != 3 or d >= WIDE;
    y[i, j] = f32(turn) * x[i, j];
}

/// The last s of x, each with its neighbour where mask is not 0.
kernel last(x: f32[t], mask: f32[s]) -> y: f32[s] {
    require s < t;
    y[i] = x[i + t - s] + (if mask[i] > 0.0 { x[i + t - s - 1] } else { 0.0 });
}

kernel first(x: f32[t], z: f32[s]) -> y: f32[s] {
    require s <= t;
    y[i] = x[i] * z[i];
}

kernel halves(x: f32[n, d]) -> y: f32[n, d / 2] {
    require d % 2 == 0;
    y[i, j] = if x[i, j] > 0.0 { x[i, d / 2 + j] } else { x[i, 2 * j + 1] };
}

kernel short(x: f32[m, n]) -> y: f32[m] {
    require n % 4 == 0 and n <= 1024;
    y[i] = sum[j] x[i, j];
}

schedule short when n % 2 == 0 { rows lanes(64) }
schedule short when n > 4096 { reduce }
"""

PATH = "sample.kern"


def files() -> dict[str, bytes]:
    return dict(compile_text(SOURCE, PATH).files)


def shaders_of(kernel: str) -> list[str]:
    return sorted(
        Path(name).name.removesuffix(".wgsl")
        for name in files()
        if Path(name).name.startswith(f"{kernel}.")
    )


REFUSED = [
    ((2, 12), 1, "needs 'd % 8 == 0': d is 12, 12 % 8 is 4.", ShapeError),
    ((2, 16), 4, "needs 'turn < 4': turn is 4.", ArgumentError),
    ((3, 16), 1, "needs 'n != 3 or d >= WIDE': n is 3, d is 16.", ShapeError),
]


@pytest.mark.parametrize(("shape", "turn", "message", "kind"), REFUSED)
def test_a_call_is_refused_with_its_numbers(
    ctx: Context, shape: tuple[int, int], turn: int, message: str, kind: type[Error]
) -> None:
    x = np.ones(shape, np.float32)
    with built_module(SOURCE) as module:
        functions: tuple[tuple[Any, Any], ...] = (
            (module.lined, ctx.matrix(x, f32)),
            (module.lined_reference, x),
        )
        for function, given in functions:
            with pytest.raises(kind) as caught:
                function(given, turn=turn)
            place, _, said = str(caught.value).partition(") ")
            assert said == message
            assert place.startswith("lined (")


def test_calls_that_meet_it_run(ctx: Context) -> None:
    x = np.arange(48, dtype=np.float32).reshape(3, 16)[:2]
    wide = np.ones((3, 64), np.float32)
    with built_module(SOURCE) as module:
        for given in (x, wide):
            got = module.lined(ctx.matrix(given, f32), turn=3).numpy()
            assert (got == 3 * given).all()
        assert "require d % 8 == 0;" in module.lined.__doc__


@pytest.mark.parametrize("count", [1, 4, 7])
def test_subscripts_that_it_proves_are_not_clamped(ctx: Context, count: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(8).astype(np.float32)
    mask = rng.integers(0, 2, count).astype(np.float32)
    later, before = x[8 - count :], x[7 - count : -1]
    with built_module(SOURCE) as module:
        got = module.last(ctx.vector(x, f32), ctx.vector(mask, f32)).numpy()
        np.testing.assert_array_equal(got, later + np.where(mask > 0, before, 0))
        got = module.first(ctx.vector(x, f32), ctx.vector(mask, f32)).numpy()
        np.testing.assert_array_equal(got, x[:count] * mask)
        pairs = x.reshape(2, 4)
        got = module.halves(ctx.matrix(pairs, f32)).numpy()
        expected = np.where(pairs[:, :2] > 0, pairs[:, 2:], pairs[:, 1::2])
        np.testing.assert_array_equal(got, expected)
        with pytest.raises(ShapeError, match="needs 's < t': s is 9, t is 8"):
            module.last(ctx.vector(x, f32), ctx.vector(np.zeros(9), f32))


@pytest.mark.parametrize("kernel", ["last", "first", "halves"])
def test_what_is_proved_is_neither_clamped_nor_checked(kernel: str) -> None:
    made = files()
    (plan,) = (
        k
        for k in read_plan(made["wgsl/sample/sample.plan"].decode()).kernels
        if k.name == kernel
    )
    assert not plan.checks
    texts = [made[f"wgsl/sample/{name}.wgsl"].decode() for name in shaders_of(kernel)]
    assert texts
    assert not any("clamp" in text for text in texts)


def test_without_the_condition_they_are_clamped() -> None:
    text = SOURCE.replace("require s < t;", "").replace("require d % 2 == 0;", "")
    made = compile_text(text, PATH).files
    for kernel in ("last", "halves"):
        found = [t for name, t in made.items() if f"/{kernel}." in name]
        assert any(b"clamp" in text for text in found)


def test_shaders_for_calls_that_are_refused_are_not_made() -> None:
    assert shaders_of("lined") == ["lined.map"]
    # Its own guard always holds; that of the other never does.
    assert all("rows_lanes64" in name for name in shaders_of("short"))
    assert not any("edge" in name for name in shaders_of("short"))


@pytest.mark.parametrize("kernel", ["lined", "last", "first", "halves", "short"])
def test_lengths_that_are_refused_are_changed(kernel: str) -> None:
    with built_module(SOURCE) as module:
        runtime = {k.name: k for k in kernels_in(module)}[kernel]
        fitting = Fitting(subject_of(runtime), reference_way(subject_of(runtime)))
        for lengths in ((1, 2, 5), (3, 3, 9), (40, 17, 0), (5000, 4999, 1)):
            sizes = tuple(zip(fitting.names, lengths, strict=False))
            near = fitting.near(sizes)
            assert near is not None, sizes
            assert fitting.suits(near)


def subject_of(runtime: Kernel) -> Subject:
    module = checked(SOURCE)
    (kernel,) = (k for k in module.kernels if k.name == runtime.name)
    return Subject(kernel, {f.name: f for f in module.functions}, runtime)
