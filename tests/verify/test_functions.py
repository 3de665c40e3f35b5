"""Functions, conversions and integers of the oracle, against Python's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar
from kerngen.verify.meaning import number
from kerngen.verify.meaning.functions import (
    convert,
    of_floats,
    of_integers,
    plain_value,
    wrap,
)
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.operators import operation
from tests.verify.bounds import INF, TOP, U

T = 2.0**-126


def n(*values: float, error: float = 0.0) -> list[BoundedArray]:
    """Numbers that are off by `error`, an argument each."""
    return [BoundedArray(*map(np.asarray, (v, error, abs(v)))) for v in values]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Let numbers be infinite, as where the oracle computes."""
    with np.errstate(all="ignore"):
        yield


MEANINGS: dict[str, tuple[str, tuple[float, ...]]] = {
    "sqrt": ("math.sqrt(x)", (0.3,)),
    "inverseSqrt": ("x**-0.5", (0.3,)),
    "exp": ("math.exp(x)", (-1.3,)),
    "exp2": ("2**x", (-1.3,)),
    "log": ("math.log(x)", (0.3,)),
    "log2": ("math.log2(x)", (0.3,)),
    "log1p": ("math.log1p(x)", (0.3,)),
    "expm1": ("math.expm1(x)", (0.3,)),
    "pow": ("math.pow(x, y)", (0.3, 1.7)),
    "sin": ("math.sin(x)", (0.3,)),
    "cos": ("math.cos(x)", (0.3,)),
    "tan": ("math.tan(x)", (0.3,)),
    "asin": ("math.asin(x)", (0.3,)),
    "acos": ("math.acos(x)", (0.3,)),
    "atan": ("math.atan(x)", (0.3,)),
    "atan2": ("math.atan2(x, y)", (0.3, 1.7)),
    "sinh": ("math.sinh(x)", (0.3,)),
    "cosh": ("math.cosh(x)", (0.3,)),
    "tanh": ("math.tanh(x)", (0.3,)),
    "asinh": ("math.asinh(x)", (0.3,)),
    "acosh": ("math.acosh(x)", (1.7,)),
    "atanh": ("math.atanh(x)", (0.3,)),
    "degrees": ("math.degrees(x)", (0.3,)),
    "radians": ("math.radians(x)", (0.3,)),
    "erf": ("math.erf(x)", (0.3,)),
    "smoothstep": (
        "((z - x) / (y - x)) ** 2 * (3 - 2 * (z - x) / (y - x))",
        (1.0, 3.0, 2.25),
    ),
    "mix": ("x * (1 - z) + y * z", (0.3, 1.7, 0.25)),
}
"""What functions mean to Python, and arguments x, y and z."""

EXACT: dict[str, tuple[str, tuple[float, ...]]] = {
    "abs": ("abs(x)", (-0.3,)),
    "sign": ("math.copysign(1, x)", (-0.3,)),
    "min": ("min(x, y)", (0.3, -1.7)),
    "max": ("max(x, y)", (0.3, -1.7)),
    "clamp": ("sorted((x, y, z))[1]", (0.25, 0.5, 2.0)),
    "saturate": ("sorted((x, 0.0, 1.0))[1]", (1.7,)),
    "floor": ("math.floor(x)", (-0.3,)),
    "ceil": ("math.ceil(x)", (0.3,)),
    "round": ("round(x)", (2.5,)),
    "trunc": ("math.trunc(x)", (-1.7,)),
    "step": ("float(y >= x)", (0.3, 0.3)),
    "ldexp": ("math.ldexp(x, int(y))", (0.75, -3.0)),
    "fract": ("x - math.floor(x)", (-1.25,)),
}


def meaning(text: str, arguments: Sequence[float]) -> float:
    named = dict(zip("xyz", arguments, strict=False))
    return float(eval(text, {"math": math}, named))


def f32(value: float) -> float:
    return float(np.float32(value))


@pytest.mark.parametrize("name", MEANINGS)
def test_a_function_has_its_value_and_the_bound_of_its_accuracy(name: str) -> None:
    text, arguments = MEANINGS[name]
    found = of_floats(name, n(*arguments))
    assert found.value == pytest.approx(meaning(text, arguments), rel=1e-7, abs=0)
    row = BUILTINS[name].accuracy
    size = abs(float(found.value))
    if name == "mix":
        x, y, a = arguments
        size = x * (1 + a) + y * a
    # The ulp more is what rounding the result to f32 may cost.
    bound = row.absolute + (
        row.ulps + row.ulps_per_argument * abs(arguments[0]) + 1
    ) * (U * size)
    assert found.error == pytest.approx(bound, rel=1e-6)
    plain = plain_value(name, [np.array(each) for each in arguments])
    assert plain == found.value


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_function_is_exact(name: str) -> None:
    text, given = EXACT[name]
    arguments = [*map(f32, given)]
    found = of_floats(name, n(*arguments))
    assert (float(found.value), float(found.error)) == (
        f32(meaning(text, arguments)),
        0,
    )


@pytest.mark.parametrize(
    "name", [*MEANINGS, "fract", "min", "max", "clamp", "saturate", "abs"]
)
def test_what_rough_arguments_may_give_is_in_the_bound(name: str) -> None:
    text, arguments = (MEANINGS | EXACT)[name]
    found = of_floats(name, n(*arguments, error=0.125))
    ends = [
        meaning(text, [each + by for each, by in zip(arguments, off, strict=True)])
        for off in product((-0.125, 0.0, 0.125), repeat=len(arguments))
    ]
    if name == "fract":
        assert found.error == INF
        return
    apart = max(abs(end - float(found.value)) for end in ends)
    assert found.error >= apart
    sure = of_floats(name, n(*arguments)).error
    if name not in {"sin", "cos"}:  # whose slope is taken to be 1
        own = BUILTINS[name].accuracy
        more = 1 + (own.ulps + own.ulps_per_argument + 2) * 4 * U
        assert found.error <= (apart + sure) * 1.001 * more + 1e-6
    else:
        assert found.error == pytest.approx(0.125 + sure, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "sure", "open_"),
    [
        ("floor", 1.5, 1.9),
        ("ceil", 1.5, 1.1),
        ("round", 1.1, 1.45),
        ("trunc", 1.5, 1.9),
        ("sign", 1.5, 0.1),
        ("sign", -1.5, -0.1),
    ],
)
def test_a_step_that_may_be_taken_is_unknown(
    name: str, sure: float, open_: float
) -> None:
    assert of_floats(name, n(sure, error=0.125)).error == 0
    assert of_floats(name, n(open_, error=0.125)).error == INF


def test_rough_arguments_of_exact_functions_bring_no_ulps() -> None:
    assert of_floats("abs", n(1.5, error=0.125)).error == pytest.approx(0.1250125)
    assert of_floats("ldexp", n(0.0, 5000.0)).error == 0


def test_f16_of_a_rough_number_is_unknown() -> None:
    assert of_floats("quantizeToF16", n(1.5, error=2.0**-20)).error == INF
    found = of_floats("quantizeToF16", n(f32(0.1)))
    assert found.value == float(np.float16(0.1))
    assert found.error == pytest.approx(8193 * U * 0.1, rel=1e-3)


PI = math.pi
DOMAINS: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("sqrt", (0.0,), (-1e-30,)),
    ("sqrt", (TOP,), (TOP * 2,)),
    ("inverseSqrt", (T,), (T / 2,)),
    ("exp", (88.0,), (88.1,)),
    ("exp", (-1e30,), (-3 * TOP,)),
    ("exp2", (127.0,), (127.1,)),
    ("exp2", (-1e30,), (-3 * TOP,)),
    ("log", (T,), (T / 2,)),
    ("log2", (T,), (T / 2,)),
    ("log1p", (-0.99,), (-0.991,)),
    ("log1p", (50.0,), (50.1,)),
    ("expm1", (-20.0,), (-20.1,)),
    ("expm1", (20.0,), (20.1,)),
    ("pow", (0.01, 6.0), (0.0099, 6.0)),
    ("pow", (10.0, -6.0), (10.1, -6.0)),
    ("pow", (1.0, -6.0), (1.0, -6.1)),
    ("pow", (1.0, 6.0), (1.0, 6.1)),
    ("sin", (PI,), (3.1416,)),
    ("cos", (-PI,), (-3.1416,)),
    ("sin", (-PI,), (-3.1416,)),
    ("cos", (PI,), (3.1416,)),
    ("tan", (PI / 4,), (0.7855,)),
    ("tan", (-PI / 4,), (-0.7855,)),
    ("asin", (1.0,), (1.001,)),
    ("asin", (-1.0,), (-1.001,)),
    ("acos", (1.0,), (1.001,)),
    ("acos", (-1.0,), (-1.001,)),
    ("atan2", (10.0, 0.1), (10.0, 0.099)),
    ("atan2", (-10.0, 10.0), (-10.1, 10.0)),
    ("atan2", (10.0, 10.0), (10.1, 10.0)),
    ("atan2", (1.0, 10.0), (1.0, 10.1)),
    ("sinh", (10.0,), (10.1,)),
    ("sinh", (-10.0,), (-10.1,)),
    ("cosh", (10.0,), (10.1,)),
    ("cosh", (-10.0,), (-10.1,)),
    ("asinh", (10.0,), (10.1,)),
    ("asinh", (-10.0,), (-10.1,)),
    ("acosh", (10.0,), (10.1,)),
    ("acosh", (1.0,), (0.999,)),
    ("atanh", (0.9,), (0.901,)),
    ("atanh", (-0.9,), (-0.901,)),
    ("mix", (1e6, -1e6, 0.5), (1.1e6, 0.0, 0.5)),
    ("mix", (1.0, 1.0, 1e6), (1.0, 1.0, 1.1e6)),
    ("mix", (1.0, 1.0, -1e6), (1.0, 1.0, -1.1e6)),
    ("smoothstep", (1.0, 2.0, 3.0), (2.0, 2.0, 3.0)),
    ("smoothstep", (1.0, 2.0, 1e6), (1.0, 2.0, 1.1e6)),
    ("clamp", (1.0, 2.0, 2.0), (1.0, 2.0, 1.5)),
    ("quantizeToF16", (1000.0,), (1001.0,)),
    ("quantizeToF16", (-1000.0,), (-1001.0,)),
    ("tanh", (1e6,), (1.1e6,)),
    ("tanh", (-1e6,), (-1.1e6,)),
    ("abs", (-TOP,), (-2 * TOP,)),
    ("abs", (TOP,), (2 * TOP,)),
]
"""Arguments that a bound is known for, and others, just outside, that have none."""


@pytest.mark.parametrize(("name", "inside", "outside"), DOMAINS)
def test_a_bound_is_known_where_the_accuracy_holds(
    name: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    assert np.isfinite(of_floats(name, n(*inside)).error)
    assert of_floats(name, n(*outside)).error == INF


def test_rough_arguments_may_lie_outside() -> None:
    assert np.isfinite(of_floats("asin", n(0.5, error=0.5)).error)
    assert of_floats("asin", n(0.5, error=0.625)).error == INF
    assert of_floats("asin", n(-0.5, error=0.625)).error == INF
    assert np.isfinite(of_floats("tanh", n(-9e5, error=1e5)).error)
    for value in (-9e5, 9e5):
        assert of_floats("tanh", n(value, error=2e5)).error == INF
    assert np.isfinite(of_floats("clamp", n(0.0, 1.0, 1.25, error=0.125)).error)
    assert of_floats("clamp", n(0.0, 1.0, 1.25, error=0.25)).error == INF
    assert np.isfinite(of_floats("smoothstep", n(0.0, 1.0, 0.5, error=0.25)).error)
    assert of_floats("smoothstep", n(0.0, 1.0, 0.5, error=0.5)).error == INF


def test_functions_that_are_no_arithmetic() -> None:
    (three,), (four,) = n(3.0, error=0.5), n(4.0)
    yes = number.known(np.array(True))
    assert of_floats("select", [three, four, yes]).value == 4
    assert of_integers("select", [three, four, yes], Scalar.I32).value == 4
    found = of_floats("fma", n(0.5, 3.0, 0.25))
    assert (float(found.value), float(found.error)) == (1.75, 0)


def test_some_functions_have_no_plain_value() -> None:
    """They are no single step that could overflow."""
    numbers = [np.array(3e38)] * 3
    assert plain_value("fma", numbers) is None
    assert plain_value("select", numbers) is None
    assert plain_value("is_nan", numbers[:1]) is None


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("is_nan", [False, True, False, False]),
        ("is_finite", [True, False, False, True]),
    ],
)
def test_bits_are_known_of_arguments_as_they_came(
    name: str, answers: list[bool]
) -> None:
    given = number.real([1.0, np.nan, np.inf, 2.0])
    given.error[3] = INF  # nothing is known of the last one
    found = of_floats(name, [given])
    assert found.value.tolist() == answers
    assert found.unsure.tolist() == [False, False, False, True]


# Integers

ENDS = {Scalar.I32: (-(2**31), 2**31 - 1), Scalar.U32: (0, 2**32 - 1)}


def cut(value: int, scalar: Scalar) -> int:
    low = ENDS[scalar][0]
    return (value - low) % 2**32 + low


@pytest.mark.parametrize("scalar", ENDS)
def test_integers_are_cut_to_32_bits(scalar: Scalar) -> None:
    values = [0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, -(2**31), -(2**31) - 1]
    found = wrap(np.array(values), scalar)
    assert found.tolist() == [cut(value, scalar) for value in values]


INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: int(Fraction(a, b)) if b else a,
    "%": lambda a, b: a - b * int(Fraction(a, b)) if b else 0,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << (b % 32),
    ">>": lambda a, b: a >> (b % 32),
}


@pytest.mark.parametrize("scalar", ENDS)
@pytest.mark.parametrize("op", INTEGERS)
def test_integer_operators(op: str, scalar: Scalar) -> None:
    low, high = ENDS[scalar]
    some = [low, low + 1, max(-7, low), max(-1, low), 0, 1, 2, 3, 7, 31, 32, 33, high]
    pairs = [(a, b) for a in some for b in some if b >= 0 or op not in {"<<", ">>"}]
    left, right = (number.known(each) for each in zip(*pairs, strict=True))
    found = operation(op, left, right, scalar)
    expected = [cut(INTEGERS[op](a, b), scalar) for a, b in pairs]
    assert found.value.tolist() == expected
    assert not found.unsure.any()


@pytest.mark.parametrize("op", ["+", "<", "=="])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_made_of_an_unknown_integer_is_unknown(op: str, which: int) -> None:
    pair = [number.known([1, 1]), number.known([2, 2])]
    pair[which] = number.unsure_where(pair[which].value, [True, False])
    found = operation(op, pair[0], pair[1], Scalar.I32)
    assert found.unsure.tolist() == [True, False]


@pytest.mark.parametrize("scalar", [Scalar.I32, Scalar.F32])
def test_relations(scalar: Scalar) -> None:
    left, right = number.known([1, 2, 3]), number.known([2, 2, 2])
    answers = {
        op: operation(op, left, right, scalar).value.tolist()
        for op in ("==", "!=", "<", "<=", ">", ">=")
    }
    assert answers == {
        "==": [False, True, False],
        "!=": [True, False, True],
        "<": [True, False, False],
        "<=": [True, True, False],
        ">": [False, False, True],
        ">=": [False, True, True],
    }


def test_what_rounding_may_turn_is_no_known_relation() -> None:
    rough, two = n(1.5, 2.5, error=0.75), number.real([2.0])
    found = [operation("<", each, two, Scalar.F32).unsure for each in rough]
    assert [bool(each.item()) for each in found] == [True, True]
    sure, _ = n(1.0, 2.5, error=0.75)
    assert not operation("<", sure, two, Scalar.F32).unsure


def test_operators_on_floats_are_rounded() -> None:
    (one,), (three,) = n(1.0), n(3.0)
    found = operation("/", one, three, Scalar.F32)
    assert found.error == pytest.approx(2.5 * U / 3)


@pytest.mark.parametrize("op", ["and", "or"])
def test_logic_is_known_where_one_side_decides(op: str) -> None:
    sides = [*product((False, True), (False, True))]  # value, and whether it is unsure
    for (a, a_open), (b, b_open) in product(sides, sides):
        found = operation(
            op,
            number.unsure_where(a, a_open),
            number.unsure_where(b, b_open),
            Scalar.BOOL,
        )
        joined = any if op == "or" else all
        could = {
            joined((x, y))
            for x in ((True, False) if a_open else (a,))
            for y in ((True, False) if b_open else (b,))
        }
        assert bool(found.unsure) == (len(could) == 2)
        assert found.unsure or could == {bool(found.value)}


def test_functions_of_integers() -> None:
    def of(name: str, scalar: Scalar, *values: int) -> Any:
        found = of_integers(name, [number.known(np.array(v)) for v in values], scalar)
        assert not found.unsure
        return found.value.item()

    assert of("abs", Scalar.I32, -(2**31)) == -(2**31)
    assert of("abs", Scalar.I32, -5) == 5
    assert of("sign", Scalar.I32, -5) == -1
    assert of("min", Scalar.I32, -5, 3) == -5
    assert of("max", Scalar.U32, 2**32 - 1, 3) == 2**32 - 1
    assert [of("clamp", Scalar.I32, x, 1, 3) for x in (0, 2, 4)] == [1, 2, 3]
    assert of("countOneBits", Scalar.I32, -1) == 32
    assert of("countLeadingZeros", Scalar.U32, 1) == 31
    assert of("countTrailingZeros", Scalar.U32, 8) == 3
    assert of("firstLeadingBit", Scalar.I32, -2) == 0
    assert of("firstTrailingBit", Scalar.U32, 12) == 2
    assert of("reverseBits", Scalar.U32, 1) == 2**31
    assert of("extractBits", Scalar.I32, 0b1110, 1, 3) == -1
    assert of("extractBits", Scalar.U32, 0b1110, 1, 3) == 7
    assert of("insertBits", Scalar.I32, 0, -1, 4, 2) == 0b110000


def test_unknown_arguments_of_functions_of_integers() -> None:
    low, high = number.known(1), number.known(3)
    assert of_integers("clamp", [low, high, low], Scalar.I32).unsure
    assert not of_integers("clamp", [low, low, low], Scalar.I32).unsure
    doubt = number.unsure_where(1, True)
    for name, given in (
        ("abs", [doubt]),
        ("countOneBits", [doubt]),
        ("min", [low, doubt]),
    ):
        assert of_integers(name, given, Scalar.I32).unsure
    one = np.array([1.0])
    off = BoundedArray(one, 0.5 * one, one)
    assert of_integers("abs", [off], Scalar.I32).unsure.all()


# Conversions


def test_conversions_of_known_numbers() -> None:
    def converted(values: list[Any], source: Scalar, to: Scalar) -> list[Any]:
        of = number.real if source is Scalar.F32 else number.known
        found = convert(of(values), source, to)
        assert not found.error.any()
        return [*found.value.tolist()]

    i32, u32, floats, truths = Scalar.I32, Scalar.U32, Scalar.F32, Scalar.BOOL
    assert converted([1.9, -1.9, 3e9, -3e9], floats, i32) == [
        *(1, -1, 2**31 - 128, -(2**31))
    ]
    assert converted([1.9, -1.9, 3e9, 5e9], floats, u32) == [1, 0, 3e9, 2**32 - 256]
    assert converted([-1, 2**31 - 1], i32, u32) == [2**32 - 1, 2**31 - 1]
    assert converted([2**32 - 1], u32, i32) == [-1]
    assert converted([True, False], truths, i32) == [1, 0]
    assert converted([True, False], truths, floats) == [1, 0]
    assert converted([3, -(2**24)], i32, floats) == [3, -(2**24)]
    assert converted([0.5, 0.1], floats, floats) == [0.5, f32(0.1)]


def test_conversions_that_round() -> None:
    found = convert(number.known([2**24 + 1]), Scalar.I32, Scalar.F32)
    assert found.error == pytest.approx((2**24 + 1) * U)
    assert (
        convert(number.unsure_where([3], [True]), Scalar.U32, Scalar.F32).error == INF
    )
    assert convert(number.unsure_where([3], [True]), Scalar.U32, Scalar.I32).unsure


def test_a_rough_float_is_an_integer_if_nothing_whole_is_near() -> None:
    value, error = np.array([1.5, 1.9, 0.9, 4e9, 1.5]), np.array([0.2] * 4 + [INF])
    found = convert(BoundedArray(value, error, value), Scalar.F32, Scalar.I32)
    assert found.unsure.tolist() == [False, True, True, False, True]
    assert found.value.tolist()[:1] == [1]
    assert found.value[3] == 2**31 - 128
    value, error = np.array([1.1, 2.0, 7.5]), np.array([0.2, 0.1, 0.4])
    found = convert(BoundedArray(value, error, value), Scalar.F32, Scalar.U32)
    assert found.unsure.tolist() == [True, True, False]
