"""The oracle of `kerngen verify` agrees with the tests' own, which shares nothing with it.

That one walks the syntax tree, one element at a time, in Python's numbers.  Each gives a
value and a bound: the two intervals must meet, and must not be wide for no reason.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kerngen.ir.memory import LEAVES, FixedArray, Member, Struct
from kerngen.ir.types import Scalar
from kerngen.runtime.calls.ranges import derive
from kerngen.source.text import Source
from kerngen.syntax.parser import parse
from kerngen.verify.contents import contents_of, flat, leaves
from kerngen.verify.meaning import number
from kerngen.verify.meaning.evaluate import Contents
from kerngen.verify.meaning.functions import convert
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.programs import CallState, Subject
from tests.compile import built as compiled
from tests.compile import checked
from tests.programs.interpreter import Interpreter
from tests.programs.memory import Fixed, Memory, Record, at_path, filled, numbers_in
from tests.programs.numbers import UndecidedError, bounds
from tests.programs.programs import CHOICES, Program, program_of
from tests.programs.tensors import Array, IllegalCallError
from tests.programs.trial import ACCURACIES, Built, built, fields, passed

SHORT = 5
"""What long axes are cut to: the interpreter is slow."""


def call_of(program: Program, kernel: Built, sizes: Mapping[str, int]) -> CallState:
    """A call, executed by the oracle."""
    module = checked(program.text)
    functions = {function.name: function for function in module.functions}
    subject = Subject(module.kernels[0], functions, kernel.kernel)
    pairs = zip(kernel.kernel.inputs, program.arrays(sizes).values(), strict=True)
    arrays = [filled(spec.element.DTYPE, *fields(given)) for spec, given in pairs]
    named = zip(kernel.kernel.scalars, program.scalars.values(), strict=True)
    scalars = tuple(passed(spec.element, value) for spec, value in named)
    dims = {dim: sizes[dim] for dim in subject.kernel.dims}
    lengths = dims | dict(kernel.kernel.guards(scalars))
    derive(kernel.kernel, lengths)
    call = CallState(subject, lengths)
    with np.errstate(all="ignore"):
        call.bind(arrays, scalars)
        for statement in subject.kernel.body:
            call.execute(statement)
    return call


def part_of(contents: Contents, memory: Memory, path: tuple[int, ...]) -> Any:
    """The numbers that a path leads to in each cell, and how far off they may be."""
    places: list[int] = []
    for n, step in enumerate(path):
        if isinstance(memory, Record):
            assert isinstance(contents, dict)
            members: list[Contents] = [*contents.values()]
            contents = members[step]
            memory = memory.members[step][1]
        elif isinstance(memory, Fixed):
            places.append(step)
            memory = memory.element
        else:
            places += path[n:]
            break
    (number,) = flat(contents)
    key: Any = (..., *places)
    return number.value[key].reshape(-1), number.error[key].reshape(-1)


def compare(contents: Contents, want: Array, seen: Counter[str]) -> None:
    """Hold the oracle's tensor to the interpreter's."""
    for path, _ in numbers_in(want.memory):
        values, errors = part_of(contents, want.memory, path)
        for n, cell in enumerate(want.cells):
            value, bound = bounds(at_path(cell, path))
            seen["cells"] += 1
            seen["unknown"] += not np.isfinite(errors[n])
            seen["looser"] += errors[n] > 4 * bound + 1e-30
            seen["exact"] += errors[n] == 0
            room = errors[n] + bound + 1e-12 * abs(value)
            assert abs(values[n] - value) <= room, f"{path} of cell {n}"


def agree(seed: int, count: int) -> Counter[str]:
    """Compare the two on random programs, and count cells."""
    drawn, seen = random.Random(seed), Counter[str]()
    for _ in range(count):
        program = program_of(drawn.randbytes(CHOICES))
        sizes = {dim: min(size, SHORT) for dim, size in program.sizes.items()}
        interpreter = Interpreter(
            parse(Source("random.kern", program.text)), ACCURACIES
        )
        try:
            expected = interpreter.run(
                program.kernel, program.arrays(sizes), program.scalars
            )
        except (UndecidedError, IllegalCallError):
            continue
        seen["programs"] += 1
        generic = f"schedule {program.kernel} {{ generic }}"
        with built(f"{program.text}\n{generic}") as kernel:
            call = call_of(program, kernel, sizes)
        for name, want in expected.items():
            compare(call.contents[name], want, seen)
    return seen


def test_the_oracles_agree() -> None:
    seen = agree(seed=4, count=5)
    assert seen["programs"] > 2
    assert seen["unknown"] + seen["looser"] < 0.02 * seen["cells"]
    assert seen["exact"] > 0.7 * seen["cells"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 6))
def test_the_oracles_agree_on_many(seed: int) -> None:
    seen = agree(seed, count=200)
    assert seen["unknown"] + seen["looser"] < 0.02 * seen["cells"]


@pytest.mark.parametrize("answer", [True, False])
def test_an_open_choice_covers_both_numbers(answer: bool) -> None:
    exact, rough = number.real(0.0), number.settle(np.array(1e17 + 3e10), np.array(1e9))
    chosen = number.choose(number.unsure_where(answer, True), rough, exact)
    for each in (exact, rough):
        apart = np.abs(chosen.value - each.value)
        assert apart + each.error <= chosen.error


def test_a_quotient_may_come_by_the_reciprocal() -> None:
    """WGSL lets an adapter multiply by 1 / y, and flush that where it is subnormal."""
    rng = np.random.default_rng(6)
    x, y = np.float32(2.0) ** rng.uniform(-126, 127.9, (2, 1000)).astype(np.float32)
    reciprocal = 1 / y
    reciprocal[reciprocal < number.TINY] = 0
    with np.errstate(all="ignore"):
        given = (x * reciprocal).astype(np.float64)
        bound = number.divide(number.real(x), number.real(y))
        good = np.abs(given - bound.value) <= bound.error
    assert (good | np.isinf(bound.error)).all()
    assert np.isfinite(bound.error).mean() > 0.7


def test_a_member_called_value_is_no_gap_between_vectors() -> None:
    """NumPy's records have a field of that name where vectors lie apart."""
    mass = Struct("Mass", (Member("value", LEAVES["f32"]),))
    body = Struct("Body", (Member("value", FixedArray(mass, 2)),))
    array = np.zeros(3, [("value", [("value", "<f4")], (2,))])
    array["value"]["value"] = [[1, 2], [3, 4], [5, 6]]
    ((path, leaf, found),) = leaves(body, array)
    assert (path, leaf) == (".value.value", LEAVES["f32"])
    assert found.tolist() == [[1, 2], [3, 4], [5, 6]]
    (only,) = flat(contents_of(body, array))
    assert np.ravel(only.value).tolist() == [1, 2, 3, 4, 5, 6]


def test_casts_of_arguments_that_are_not_finite_are_known() -> None:
    found = convert(number.real([np.nan, np.inf, -np.inf]), Scalar.F32, Scalar.I32)
    assert found.value.tolist() == [0, 2**31 - 128, -(2**31)]
    assert not found.unsure.any()
    overflown = number.multiply(number.real(3e38), number.real(3e38))
    assert convert(overflown, Scalar.F32, Scalar.I32).unsure.all()


def test_a_factor_of_0_leaves_nothing_to_overflow() -> None:
    """What is taken out is 0, and so is what stays."""
    text = """
        kernel f(x: f32[n], u: f32[n]) -> y: f32[n] { y[i] = x[i] * u[i] + x[i] * 2.0; }
    """
    kernel = checked(text).kernels[0]
    with compiled(text) as (made,):
        call = CallState(Subject(kernel, {}, made), {"n": 2})
    with np.errstate(all="ignore"):
        call.bind([np.array([0, 3], np.float32), np.array([5, 7], np.float32)], ())
        call.execute(kernel.body[0])
    found = call.contents["y"]
    assert isinstance(found, BoundedArray)
    assert (found.value.tolist(), found.error.tolist()) == ([0, 27], [0, 0])


@pytest.mark.parametrize(
    "value",
    [
        "0.5 * x[i] + u[i] * 0.5",
        "0.5 * x[i] - (0.25 - u[i] * 0.5)",
        "(0.5 * vec2f(x[i], u[i]) + 0.5 * vec2f(u[i], x[i])).x",
    ],
)
def test_sums_of_products_may_be_computed_with_a_factor_taken_out(value: str) -> None:
    """Mesa computes `0.5 * x + 0.5 * u` as `0.5 * (x + u)`, which overflows before."""
    text = f"kernel f(x: f32[n], u: f32[n]) -> y: f32[n] {{ y[i] = {value}; }}"
    x = np.array([1e38, 2e38, 3e38, 3e38, -2e38], np.float32)
    u = np.array([1e38, 1e38, 1e38, -3e38, -2e38], np.float32)
    kernel = checked(text).kernels[0]
    with compiled(text) as (made,):
        call = CallState(Subject(kernel, {}, made), {"n": len(x)})
    with np.errstate(all="ignore"):
        call.bind([x, u], ())
        call.execute(kernel.body[0])
    found = call.contents["y"]
    assert isinstance(found, BoundedArray)
    assert np.isfinite(found.error).tolist() == [True, True, False, False, False]
