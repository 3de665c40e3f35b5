"""The partial derivatives of built-ins, against differences in float64 and PyTorch.

The points are drawn from where the function's accuracy holds; its corners, and where
arguments are equal, are among them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np
import pytest

from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.runtime.calls.kernel import Kernel
from tests.compile import kernels_in, loaded
from tests.language.partials import check_partials, computed, drawn, kernels_of

ROWS = {name: row for name, row in BUILTINS.items() if row.partials}


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return kernels_of(ROWS.values())


@pytest.mark.parametrize("name", ROWS)
def test_partials_are_what_differences_are(
    kernels: dict[str, Kernel], name: str
) -> None:
    check_partials(ROWS[name], kernels[name])


def test_what_has_a_value_of_f32_has_partials() -> None:
    for name, row in BUILTINS.items():
        results = {overload.result for overload in row.overloads}
        assert (row.partials is not None) == (Scalar.F32 in results), name
        assert row.partials is None or len(row.partials) == row.arity


KNOWN: dict[str, list[tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "smoothstep": [
        ((1.0, 3.0, 1.0), (0.0, 0.0, 0.0)),
        ((1.0, 3.0, 3.0), (0.0, 0.0, 0.0)),
        ((1.0, 3.0, 9.0), (0.0, 0.0, 0.0)),
        ((1.0, 3.0, 2.0), (-0.375, -0.375, 0.75)),
    ],
    "pow": [
        ((0.0, 2.0), (0.0, 0.0)),
        ((0.0, 1.0), (1.0, 0.0)),
        ((0.0, 0.0), (0.0, 0.0)),
        ((0.0, 0.5), (np.inf, 0.0)),
        ((-2.0, 3.0), (12.0, np.nan)),
    ],
    "clamp": [
        ((2.0, 2.0, 2.0), (0.0, 0.5, 0.5)),
        ((2.0, 2.0, np.inf), (0.5, 0.5, 0.0)),
    ],
    "max": [((np.inf, np.inf), (0.5, 0.5)), ((-np.inf, 1.0), (0.0, 1.0))],
    "sqrt": [((0.0,), (np.inf,))],
}
"""Partials at points where differences are none: by hand, and as PyTorch has them."""


@pytest.mark.parametrize("name", KNOWN)
def test_partials_where_differences_are_none(
    kernels: dict[str, Kernel], name: str
) -> None:
    points, wanted = (np.array(each) for each in zip(*KNOWN[name], strict=True))
    with np.errstate(all="ignore"):
        _, *partials = computed(kernels[name], points)
    np.testing.assert_allclose(np.stack(partials, -1), wanted, rtol=1e-12)


SAME_IN_TORCH: Final = (
    "abs sign floor ceil round trunc sqrt exp exp2 log log2 pow sin cos tan asin acos "
    "atan atan2 sinh cosh tanh asinh acosh atanh erf log1p expm1 clamp"
)
IN_TORCH: Final = {name: name for name in SAME_IN_TORCH.split()} | {
    "min": "minimum",
    "max": "maximum",
    "fract": "frac",
    "inverseSqrt": "rsqrt",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "mix": "lerp",
}
"""What PyTorch calls functions that it has."""


@pytest.mark.torch
@pytest.mark.parametrize("name", IN_TORCH)
def test_partials_are_those_of_torch(kernels: dict[str, Kernel], name: str) -> None:
    torch: Any = import_module("torch")

    # PyTorch's clamp gives all of a tie to the number, and nothing to the bound.
    points = drawn(ROWS[name], with_ties=name != "clamp")
    inputs = [torch.tensor(column, requires_grad=True) for column in points.T]
    function = getattr(torch, IN_TORCH[name])
    function(*inputs).sum().backward()
    _, *partials = computed(kernels[name], points)
    for each, got in zip(inputs, partials, strict=True):
        wanted = each.grad.numpy() if each.grad is not None else 0.0 * got
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-14)


# Functions of whole vectors and matrices

ARGUMENTS: Final = {
    "dot": "vec3f vec3f -> f32",
    "length": "vec3f -> f32",
    "distance": "vec3f vec3f -> f32",
    "normalize": "vec3f -> vec3f",
    "cross": "vec3f vec3f -> vec3f",
    "reflect": "vec3f vec3f -> vec3f",
    "faceForward": "vec3f vec3f vec3f -> vec3f",
    "refract": "vec3f vec3f f32 -> vec3f",
    "transpose": "mat3x2f -> mat2x3f",
    "determinant": "mat2x2f -> f32",
    "determinant_3": "mat3x3f -> f32",
    "determinant_4": "mat4x4f -> f32",
}
"""By a built-in's name, and what tells its types apart."""

TYPES: Final[dict[str, ValueType]] = {
    "f32": Scalar.F32,
    "vec3f": Vector(Scalar.F32, 3),
    **{m.spelling: m for c in (2, 3, 4) for r in (2, 3, 4) for m in [Matrix(c, r)]},
}
SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "f32": (),
    "vec3f": (3,),
    "mat3x2f": (3, 2),
    "mat2x3f": (2, 3),
    "mat2x2f": (2, 2),
    "mat3x3f": (3, 3),
    "mat4x4f": (4, 4),
}


def adjoint_text(name: str) -> str:
    """A kernel of the function's value and its adjoints."""
    given, result = ARGUMENTS[name].split(" -> ")
    typed = [*zip("xyz", given.split(), strict=False)]
    tensors = ", ".join(f"{letter}: {type_}[n]" for letter, type_ in typed)
    formal = ", ".join(f"{letter}: {type_}" for letter, type_ in typed)
    call = ", ".join(f"{letter}[i]" for letter, _ in typed)
    builtin, *_ = name.split("_")
    types = tuple(TYPES[type_] for type_ in given.split())
    texts = [*zip(typed, GEOMETRY[builtin].adjoints_of(types), strict=True)]
    functions = "".join(
        f"fn {name}_{x}({formal}, f: {result}, d: {result}) -> {type_} {{ {text} }}\n"
        for (x, type_), text in texts
    )
    outputs = ", ".join(f"d{x}: {type_}[n]" for x, type_ in typed)
    body = " ".join(f"d{x}[i] = {name}_{x}({call}, f[i], d[i]);" for x, _ in typed)
    return (
        f"{functions}kernel {name}_adjoints({tensors}, d: {result}[n]) -> "
        f"f: {result}[n], {outputs} {{ f[i] = {builtin}({call}); {body} }}\n"
    )


@pytest.fixture(scope="module")
def adjoints() -> dict[str, Kernel]:
    made = kernels_in(loaded("".join(map(adjoint_text, ARGUMENTS))))
    return dict(zip(ARGUMENTS, made, strict=True))


def test_all_have_adjoints() -> None:
    assert {name.split("_")[0] for name in ARGUMENTS} == set(GEOMETRY)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_adjoints_are_what_differences_are(
    adjoints: dict[str, Kernel], name: str
) -> None:
    """The dot-product test: along a direction in one argument after the other."""
    random = np.random.default_rng(3)
    given, result = ARGUMENTS[name].split(" -> ")

    def draw(type_: str) -> Any:
        return random.uniform(-1, 1, (50, *SHAPES[type_]))

    arguments, d = [draw(type_) for type_ in given.split()], draw(result)
    compute: Any = adjoints[name].reference
    with np.errstate(all="ignore"):
        _, *found = compute(*arguments, d)
        for place, (type_, got) in enumerate(zip(given.split(), found, strict=True)):
            along = draw(type_)
            below, above = (
                compute(*arguments[:place], moved, *arguments[place + 1 :], d)[0]
                for moved in (arguments[place] + s * along for s in (-1e-6, 1e-6))
            )
            wanted = (d * (above - below) / 2e-6).reshape(50, -1).sum(-1)
            inner = (got * along).reshape(50, -1).sum(-1)
            np.testing.assert_allclose(inner, wanted, rtol=1e-5, atol=1e-7)


def test_distances_rise_by_nothing_from_0(adjoints: dict[str, Kernel]) -> None:
    x, d = np.ones((2, 3)), np.ones(2)
    with np.errstate(all="ignore"):
        none: Any = adjoints["length"].reference(0 * x, d)
        assert not none[1].any()
        same: Any = adjoints["distance"].reference(x, x, d)
    assert not same[1].any()
    assert not same[2].any()
