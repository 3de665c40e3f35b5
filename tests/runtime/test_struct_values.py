"""Instances of structs: what they are made from, what they refuse, and in which words."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from kerngen.runtime import DtypeError, ShapeError, UniformRangeError

from .structs import AXES, Cluster, Particle, particle

MAKE: Any = Particle
"""The class, to give it what type checkers would refuse."""

GOOD: dict[str, Any] = {
    "pos": (1.0, 2.0, 3.0),
    "mass": 1.0,
    "id": 7,
    "charge": -1,
    "trail": ((1.0, 2.0), (3.0, 4.0)),
    "heat": 0.5,
}


HUGE = np.finfo(np.longdouble).max
"""Finite, and infinite as a Python float where the two differ."""


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("pos", [1, 2, 3], (1.0, 2.0, 3.0)),
        ("pos", np.array([1, 2, 3], np.uint8), (1.0, 2.0, 3.0)),
        ("pos", np.array([0.1, 2, 3], np.float32), (float(np.float32(0.1)), 2.0, 3.0)),
        ("pos", range(3), (0.0, 1.0, 2.0)),
        ("pos", (x for x in (1, 2.5, 3)), (1.0, 2.5, 3.0)),
        ("pos", memoryview(bytearray(3)), (0.0, 0.0, 0.0)),
        ("mass", 2, 2.0),
        ("mass", np.float64(0.5), 0.5),
        ("mass", np.array(0.5), 0.5),
        ("mass", -math.inf, -math.inf),
        ("mass", np.longdouble("inf"), math.inf),
        ("pos", np.array([1, 2.5, 3], np.longdouble), (1.0, 2.5, 3.0)),
        ("id", np.uint32(2**32 - 1), 2**32 - 1),
        ("id", np.array(3), 3),
        ("trail", np.arange(4.0).reshape(2, 2), ((0.0, 1.0), (2.0, 3.0))),
        ("trail", [np.zeros(2), (1, 2)], ((0.0, 0.0), (1.0, 2.0))),
    ],
)
def test_whatever_is_array_like_becomes_nested_tuples(
    field: str, given: Any, kept: Any
) -> None:
    value = getattr(MAKE(**{**GOOD, field: given}), field)
    assert value == kept
    assert repr(value) == repr(kept)


def test_frozen_means_frozen() -> None:
    array = np.zeros((2, 2))
    made = MAKE(**{**GOOD, "trail": array})
    array[...] = 9.0
    assert made.trail == ((0.0, 0.0), (0.0, 0.0))
    frozen: Any = made
    with pytest.raises(FrozenInstanceError):
        frozen.mass = 3.0
    assert made == replace(made)
    assert hash(made) == hash(replace(made))
    assert made != replace(made, id=8)
    assert MAKE(**GOOD | {"trail": [[1, 2], [3, 4]]}) == MAKE(**GOOD)


def test_copies_and_pickles_are_equal() -> None:
    made = Cluster((particle(1), particle(2)), AXES, particle(3))
    for other in (
        copy.copy(made),
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
    ):
        assert other == made
        assert other.pack() == made.pack()


@pytest.mark.parametrize(
    ("field", "wrong", "error", "message"),
    [
        (
            "id",
            -1,
            UniformRangeError,
            "'Particle.id' is -1; u32 holds 0 to 4294967295.",
        ),
        ("id", 2**32, UniformRangeError, "'Particle.id' is 4294967296; u32 holds"),
        ("id", 10**400, UniformRangeError, "'Particle.id' is 1000"),
        (
            "id",
            1.0,
            DtypeError,
            "'Particle.id' is 1.0 (float); expected an integer (u32)",
        ),
        ("id", True, DtypeError, "'Particle.id' is True (bool); expected an integer"),
        ("id", np.True_, DtypeError, "'Particle.id' is np.True_ (bool); expected"),
        ("charge", 2**31, UniformRangeError, "i32 holds -2147483648 to 2147483647"),
        ("charge", -(2**31) - 1, UniformRangeError, "'Particle.charge' is -2147483649"),
        ("mass", 3.41e38, UniformRangeError, "'Particle.mass' is 3.41e+38; f32 holds"),
        ("mass", 10**400, UniformRangeError, "'Particle.mass' is 1000"),
        (
            "mass",
            "1",
            DtypeError,
            "'Particle.mass' is '1' (str); expected a number (f32)",
        ),
        ("mass", 1j, DtypeError, "'Particle.mass' is 1j (complex)"),
        ("mass", None, DtypeError, "'Particle.mass' is None (NoneType)"),
        ("mass", (1.0,), DtypeError, "'Particle.mass' is (1.0,) (tuple)"),
        ("mass", np.zeros(1), DtypeError, "'Particle.mass' is an array of shape (1,)"),
        ("heat", 65520.0, UniformRangeError, "'Particle.heat' is 65520.0; f16 holds"),
        ("heat", -1e5, UniformRangeError, "f16 holds -65504.0 to 65504.0"),
        (
            "pos",
            (1.0, 2.0),
            ShapeError,
            "'Particle.pos' is (1.0, 2.0); expected 3 values",
        ),
        ("pos", 1.0, ShapeError, "'Particle.pos' is 1.0; expected 3 values"),
        ("pos", "abc", ShapeError, "'Particle.pos' is 'abc'; expected 3 values"),
        (
            "pos",
            {1, 2, 3},
            ShapeError,
            "'Particle.pos' is {1, 2, 3}; expected 3 values",
        ),
        ("pos", (1, 2, "3"), DtypeError, "'Particle.pos[2]' is '3' (str)"),
        ("pos", (1, 4e38, 3), UniformRangeError, "'Particle.pos[1]' is 4e+38"),
        ("pos", np.zeros((3, 1)), DtypeError, "'Particle.pos[0]' is [0.0] (list)"),
        (
            "trail",
            ((1, 2),),
            ShapeError,
            "'Particle.trail' is ((1, 2),); expected 2 x 2",
        ),
        (
            "trail",
            ((1, 2), (3,)),
            ShapeError,
            "'Particle.trail[1]' is (3,); expected 2 v",
        ),
        (
            "trail",
            np.full((2, 2), 1e39),
            UniformRangeError,
            "'Particle.trail[0][0]' is",
        ),
        ("trail", ((1, 2), (3, None)), DtypeError, "'Particle.trail[1][1]' is None"),
        ("heat", HUGE, UniformRangeError, "'Particle.heat' is np.longd"),
        ("mass", np.array(HUGE), UniformRangeError, "'Particle.mass' is array("),
        ("pos", np.array([1, HUGE, 3]), UniformRangeError, "'Particle.pos[1]' is"),
        (
            "trail",
            np.zeros((3, 2)),
            ShapeError,
            "is an array of shape (3, 2); expected 2",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    field: str, wrong: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        MAKE(**{**GOOD, field: wrong})
    assert message in str(caught.value)


def test_the_largest_reals_round_as_numpy_rounds_them() -> None:
    for kind, name in ((np.float32, "mass"), (np.float16, "heat")):
        largest = float(np.finfo(kind).max)
        beyond = 2 * largest - float(np.nextafter(kind(largest), kind(0)))
        tie = (largest + beyond) / 2
        below = float(np.nextafter(tie, 0))
        for sign in (1, -1):
            made = MAKE(**{**GOOD, name: sign * below})
            assert getattr(Particle.unpack(made.pack()), name) == sign * largest
            with pytest.raises(UniformRangeError):
                MAKE(**{**GOOD, name: sign * tie})


def test_structs_in_structs_are_checked() -> None:
    one = particle()
    make: Any = Cluster
    made = make([one, one], np.eye(3), one)
    assert made.members == (one, one)
    assert made.axes[1] == (0.0, 1.0, 0.0)
    assert Cluster.unpack(made.pack()) == made
    for wrong, error, message in (
        ((one, 3), DtypeError, "'Cluster.members[1]' is 3 (int); expected a Particle."),
        ((one,), ShapeError, "'Cluster.members' is (Particle("),
        (one, ShapeError, "expected 2 values"),
    ):
        with pytest.raises(error) as caught:
            make(wrong, made.axes, one)
        assert message in str(caught.value)


def test_nans_of_numpy_keep_their_bits() -> None:
    wide = np.array([0x7F800001, 0xFF812345, 0x7FC00007], np.uint32).view(np.float32)
    half = np.array(0xFD01, np.uint16).view(np.float16)
    made = MAKE(**{**GOOD, "pos": wide, "mass": wide[1], "heat": half})
    record = np.frombuffer(made.pack(), Particle.DTYPE)[0]
    assert record["pos"].tobytes() == wide.tobytes()
    assert record["mass"].tobytes() == wide[1].tobytes()
    assert record["heat"].tobytes() == half.tobytes()
    again = Particle.unpack(made.pack())
    assert again.pack() == made.pack()
    assert replace(again, id=0).pack()[:16] == made.pack()[:16]


def test_a_nan_that_f32_has_no_bits_for_stays_one() -> None:
    faint = np.array(0x7FF0000000000001, np.uint64).view(np.float64).item()
    made = MAKE(**{**GOOD, "mass": faint, "heat": -faint})
    again = Particle.unpack(made.pack())
    assert math.isnan(again.mass)
    assert math.isnan(again.heat)


def test_infinities_that_cancel_are_no_nan() -> None:
    made = MAKE(**{**GOOD, "pos": (math.inf, -math.inf, 1.0)})
    assert Particle.unpack(made.pack()) == made
