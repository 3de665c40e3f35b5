"""Every standard kernel, by every schedule and variant of it, against its oracle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import kerngen_kernels
from kerngen.compiler import compile_text
from kerngen.plan.tree import Choice
from kerngen.runtime import Context, LimitError, ShapeError, f32, u32
from kerngen.runtime.calls.kernel import TensorSpec
from kerngen.source.diagnostic import CompileError
from kerngen_kernels import loss
from tests.budget import phases, sampled, tonight
from tests.compile import built, with_generic_schedules

from .cases import Case, standard_kernels
from .domains import Dims
from .oracles import ORACLES
from .tolerance import SERIAL, expect, reference_arithmetic, shader_arithmetic
from .ways import Way, all_ways, large_ways, run_kernel, run_reference, ways

CASES = standard_kernels()
WAYS = all_ways()
BY_DAY = frozenset({"scan", "softmax"})
"""The modules that `generic`, and references in float64, run by default: the others do nightly."""

RECURRENT = "recurrence"
"""The module whose stages `generic` does not fit."""

MATMUL_FORMS = ("", "_bias", "_gelu", "_bias_gelu")

SEEDS = st.integers(0, 2**32 - 1)
# At, just below and just above multiples of vectors, micro-tiles and tiles.
EDGES = st.sampled_from(
    (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129)
)

quick = settings(
    max_examples=3,
    deadline=None,
    phases=phases(),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def sizes(case: Case) -> st.SearchStrategy[Dims]:
    """Lengths for every dim of a kernel; a single one may be long."""
    longest = 20000 if len(case.kernel.dims) == 1 else 200
    lengths = EDGES | st.integers(0, longest)
    return st.fixed_dictionaries(dict.fromkeys(case.kernel.dims, lengths))


def fixed(case: Case, size: int) -> Dims:
    return dict.fromkeys(case.kernel.dims, size)


def results(case: Case) -> list[TensorSpec]:
    """What a kernel changes or makes, in the order of its results."""
    changed = [spec for spec in case.kernel.tensors if spec.access == "update"]
    return [*changed, *case.kernel.outputs]


def test_no_kernel_is_forgotten() -> None:
    listed = {
        f"{module}.{name}" for module, oracles in ORACLES.items() for name in oracles
    }
    assert {str(case) for case in CASES} == listed
    folder = next(iter(kerngen_kernels.__path__))
    modules = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert modules == set(ORACLES)


def test_every_kernel_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "kernels.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line[:3] == "| `"]
    for row in rows:
        module, text = row.strip("| ").split(" | ")
        names = set(re.findall(r"`(\w+)`", text)) - set(MATMUL_FORMS)
        suffixes = MATMUL_FORMS if module == "`matmul`" else ("",)
        assert {n + s for n in names for s in suffixes} == set(
            ORACLES[module.strip("`")]
        )
    assert len(rows) == len(ORACLES)


@pytest.mark.nightly
@pytest.mark.parametrize("size", [127, 128, 132])
def test_every_way_finds_sizes(size: int) -> None:
    """Also a variant for rows of few elements in all, along several dims, all drawn long."""
    rng = np.random.default_rng(4)
    for way in WAYS:
        way.draw(rng, fixed(way.case, size))


def hold_to_oracle(ctx: Context, way: Way, how: settings) -> None:
    """Run a kernel one way, at sizes of all kinds, and compare with its oracle."""
    case = way.case

    @how
    @example(lengths=fixed(case, 1), seed=1)
    @example(lengths=fixed(case, 132), seed=2)
    @given(lengths=sizes(case), seed=SEEDS)
    def check(lengths: Dims, seed: int) -> None:
        rng = np.random.default_rng(seed)
        arrays, scalars = way.draw(rng, lengths)
        way.check(way.run(ctx, arrays, scalars), arrays, scalars)

    check()


def usual(case: Case) -> int:
    """Return an odd length for half of the kernels, but for none that has three axes.

    Tiles for odd lengths take ten times as long to compile, and `test_guards` runs some.
    """
    is_odd = len(case.kernel.dims) < 3 and CASES.index(case) % 2
    return 37 if is_odd else 132


CALLED = [
    pytest.param(
        case,
        marks=(
            [pytest.mark.nightly]
            if number % 6 or "attention" in case.kernel.name
            else []
        ),
        id=str(case),
    )
    for number, case in enumerate(CASES)
]
"""Each sixth by default, but no attention: that takes five seconds to compile."""


@pytest.mark.parametrize("case", CALLED)
def test_as_called(ctx: Context, case: Case) -> None:
    """With all choices left to the runtime, as users call it."""
    sums = [each for way in ways(case) for each in way.summations]
    arithmetic = shader_arithmetic(lambda n: max(each.depth(n) for each in sums))
    longest = min((each.longest for each in sums if each.longest), default=5000)

    @quick
    @example(lengths=fixed(case, usual(case)), seed=2)
    @given(lengths=sizes(case), seed=SEEDS)
    def check(lengths: Dims, seed: int) -> None:
        rng = np.random.default_rng(seed)
        dims = {dim: min(length, longest) for dim, length in lengths.items()}
        scalars = case.scalars(rng)
        arrays = case.arrays(rng, case.fit(dims, scalars))
        actual = run_kernel(ctx, case.kernel, arrays, scalars)
        expected = expect(case.oracle, arithmetic, arrays, scalars)
        for want, got in zip(expected, actual, strict=True):
            want.check(got, str(case))

    check()


@pytest.mark.nightly
@pytest.mark.parametrize("way", tonight(WAYS), ids=str)
def test_schedule_at_length(ctx: Context, way: Way) -> None:
    hold_to_oracle(ctx, way, settings(quick, max_examples=100))


@pytest.mark.parametrize("way", sampled(large_ways(), 7), ids=str)
def test_a_schedule_for_large_adapters(ctx: Context, way: Way) -> None:
    """It is right on an adapter that has the memory; another refuses it, and says why."""
    has = ctx.device.limits["max-compute-workgroup-storage-size"]
    if has >= way.workgroup_bytes:
        hold_to_oracle(ctx, way, quick)
        return
    arrays, scalars = way.draw(np.random.default_rng(5), fixed(way.case, 8))
    with pytest.raises(LimitError, match=f"{has} bytes of workgroup memory"):
        way.run(ctx, arrays, scalars)


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=[] if name in BY_DAY else [pytest.mark.nightly])
        for name in ORACLES
        if name != RECURRENT
    ],
)
def test_generic(ctx: Context, module: str) -> None:
    """`generic` accepts every stage but those of recurrences, and agrees."""
    oracles = ORACLES[module]
    text = with_generic_schedules(module, tuple(oracles))
    with built(text) as kernels:
        assert {kernel.name for kernel in kernels} == set(oracles)
        for kernel in kernels:
            if f"schedule {kernel.name} {{ generic }}" not in text:
                assert kernel.name.endswith("_kept")
                continue
            case = Case(module, kernel, oracles[kernel.name])
            assert all(
                [case.name for case in choice.cases] == ["generic"]
                for choice in kernel.body
                if isinstance(choice, Choice)
            )
            hold_to_oracle(ctx, next(ways(case)), quick)


def test_generic_refuses_recurrences() -> None:
    text = with_generic_schedules(RECURRENT, tuple(ORACLES[RECURRENT]))
    with pytest.raises(CompileError) as caught:
        compile_text(text, "recurrence.kern")
    assert {fault.code for fault in caught.value.diagnostics} == {"KG0751"}
    assert "the stage is a recurrence" in str(caught.value)


def test_a_label_needs_a_class(ctx: Context) -> None:
    scores, labels = ctx.empty((2, 0), f32), ctx.vector([0, 0], u32)
    with pytest.raises(ShapeError, match="cross_entropy"):
        loss.cross_entropy(scores, labels)


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        pytest.param(
            case,
            dtype,
            marks=(
                []
                if dtype is np.float32 or case.module in BY_DAY
                else [pytest.mark.nightly]
            ),
            id=f"{case}-{dtype.__name__}",
        )
        for case in CASES
        for dtype in (np.float32, np.float64)
    ],
)
def test_reference(case: Case, dtype: type[np.floating[Any]]) -> None:
    arithmetic = reference_arithmetic(dtype)

    @quick
    @example(lengths=fixed(case, 1), seed=1)
    @example(lengths=fixed(case, 132), seed=2)
    @given(lengths=sizes(case), seed=SEEDS)
    def check(lengths: Dims, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shortened = {
            dim: min(length, SERIAL.longest) for dim, length in lengths.items()
        }
        scalars = case.scalars(rng)
        arrays = case.arrays(rng, case.fit(shortened, scalars))
        if dtype is np.float64:
            arrays = {
                name: array.astype(dtype) if array.dtype.kind == "f" else array
                for name, array in arrays.items()
            }
        wide = any(array.dtype == np.float64 for array in arrays.values())
        within = arithmetic if wide else reference_arithmetic(np.float32)
        actual = run_reference(case, arrays, scalars)
        expected = expect(case.oracle, within, arrays, scalars)
        for want, got, spec in zip(expected, actual, results(case), strict=True):
            real = wide and got.dtype.kind == "f"
            assert got.dtype == (dtype if real else spec.element.DTYPE)
            want.check(got, f"{case} in {np.dtype(dtype)}")

    check()
