"""Kernels with structs, vectors and matrices: on the adapter, by NumPy, and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import (
    AliasError,
    Context,
    DtypeError,
    FeatureError,
    ShapeError,
    UniformRangeError,
    f32,
    mat3x3h,
    vec2h,
    vec3f,
)
from kerngen.runtime.calls.planner import Planner
from tests.compile import built
from tests.emit.struct_source import SOURCE

from .kernels import launch, refuse


@pytest.fixture(scope="module")
def made() -> Iterator[Any]:
    """The kernels of the source, and the classes of its structs by name."""
    with built(SOURCE) as (step, copies):
        classes = {spec.name: spec.element for spec in step.scalars}
        yield SimpleNamespace(
            step=step,
            copies=copies,
            Particle=step.tensors[0].element,
            Light=classes["light"],
            Vector=classes["all"],
            StepUniform=classes["u"],
        )


@pytest.fixture(params=["software", "reference"])
def any_ctx(ctx: Context, request: pytest.FixtureRequest) -> Iterator[Context]:
    if request.param == "software":
        yield ctx
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


def particles(made: Any, shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(1)
    records: Any = np.zeros(shape, made.Particle.DTYPE)
    for name in ("pos", "mass", "vel"):
        records[name] = rng.normal(size=records[name].shape)
    records["id"] = rng.integers(0, 2**32, shape, dtype=np.uint32)
    return records


def scalars(made: Any) -> dict[str, Any]:
    """Return an argument for every scalar; halves are numbers that f16 holds."""
    rng = np.random.default_rng(2)
    halves = np.arange(18.0).reshape(3, 2, 3)
    light = made.Light(
        rng.normal(size=3), 0.75, rng.normal(size=5), rng.normal(size=(3, 3)), halves
    )
    other = replace(light, falloff=tuple(range(5)), gain=-1.0)
    tail: dict[str, Any] = {"np": 0.0, "Field": 1, "Light": -2, "spaced": (0.0, 1.0)}
    tail = {f"{name}_": value for name, value in tail.items()}
    whole = made.Vector(
        pack_=3,
        lambda_=0.5,
        FIELDS_=(1, -1),
        light=other,
        lights=[light, other],
        **tail,
    )
    return {
        "light": light,
        "all": whole,
        "u": made.StepUniform(x=1.0, self=((1, 2, 3, 4), (5, 6, 7, 8.5))),
        "turn": rng.normal(size=(3, 3)).astype(np.float32),
        "tall": ((1, 2, 3, 4), (5, 6, 7, 8)),
        "dt": 0.25,
        "shift": (1.0, 2.0, 3.0),
        "at": [4, 5],
    }


def test_every_part_of_every_argument_arrives(any_ctx: Context, made: Any) -> None:
    records, given = particles(made, (7,)), scalars(made)
    p = any_ctx.vector(records, made.Particle)
    y, z = launch(made.step, p, ctx=any_ctx, **given)
    light, turn = given["light"], np.asarray(given["turn"], float)
    pos = records["pos"] + records["vel"] * 0.25
    np.testing.assert_allclose(p.numpy()["pos"], pos, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(p.numpy()["id"], records["id"] + np.uint32(3 + 5))
    for name in ("mass", "vel"):
        assert p.numpy()[name].tobytes() == records[name].tobytes()
    by_hand = np.array(light.color) * light.falloff[2] + pos @ turn + (1, 2, 3)
    np.testing.assert_allclose(y.numpy(), by_hand, rtol=1e-4, atol=1e-5)
    twice = 2 * 0.75 + 4 + turn[2][0]
    total = twice + 17 + 8.5 + 8 * records["mass"].astype(float)
    np.testing.assert_allclose(z.numpy(), total, rtol=1e-5)


VALUES = """
struct Place { value: vec3f }
struct Mass { value: f32 }
struct Body { value: Mass[2], places: Place[2] }

kernel sums(places: Place[n], masses: Mass[n], bodies: Body[n], origin: Place)
        -> y: f32[n], copied: Place[n] {
    y[i] = places[i].value.x + masses[i].value + bodies[i].value[1].value
        + bodies[i].places[1].value.y + origin.value.z;
    copied[i] = places[i];
}
"""


def test_a_struct_of_one_field_called_value(any_ctx: Context) -> None:
    """NumPy has the gaps between vectors as records of a field of that name, too."""
    with built(VALUES) as (sums,):
        classes: list[Any] = [spec.element for spec in sums.inputs]
        place, mass, body = classes
        places = [place((i, 10, i)) for i in range(3)]
        bodies = [body((mass(1), mass(i)), (places[i], places[2])) for i in range(3)]
        arguments = [
            any_ctx.vector(places, place),
            any_ctx.vector([mass(100 * i) for i in range(3)], mass),
            any_ctx.vector(bodies, body),
        ]
        origin = place((0, 0, 1000))
        y, copied = launch(sums, *arguments, ctx=any_ctx, origin=origin)
        assert y.numpy().tolist() == [1010 + 102 * i for i in range(3)]
        assert [x.numpy().dtype for x in arguments] == [
            x.DTYPE for x in (place, mass, body)
        ]
        assert place.unpack_array(copied.numpy()) == places
        assert copied[2:].item() == places[2]
        arrays = [x.numpy() for x in arguments]
        assert sums.reference(*arrays, origin=origin)[0].tolist() == y.numpy().tolist()


def test_elements_are_copied_bit_by_bit(any_ctx: Context, made: Any) -> None:
    records = particles(made, (4, 2))
    matrices = np.arange(18.0).reshape(2, 3, 3).astype(np.float16)
    halves = np.arange(6.0).reshape(3, 2).astype(np.float16)
    arguments = (
        any_ctx.matrix(records, made.Particle),
        any_ctx.vector(matrices, mat3x3h),
        any_ctx.vector(halves, vec2h),
    )
    out = any_ctx.empty(4, made.Particle)
    q, w, x = launch(made.copies, *arguments, ctx=any_ctx, out=(out, None, None))
    assert q is out
    for name, column in (("pos", 1), ("mass", 0), ("vel", 0), ("id", 1)):
        assert q.numpy()[name].tobytes() == records[name][:, column].tobytes()
    np.testing.assert_array_equal(w.numpy(), matrices.astype(np.float32))
    np.testing.assert_array_equal(x.numpy(), halves.astype(np.float32))


def test_views_and_empty_tensors_as_arguments(any_ctx: Context, made: Any) -> None:
    records, given = particles(made, (7,)), scalars(made)
    p = any_ctx.vector(records, made.Particle)
    for start, stop in ((1, 4), (3, 3), (0, 7)):
        part = p[start:stop]
        before = p.numpy()
        launch(made.step, part, ctx=any_ctx, **given)
        after = p.numpy()
        moved = before["pos"] + before["vel"] * 0.25
        inside = slice(start, stop)
        np.testing.assert_allclose(after["pos"][inside], moved[inside], rtol=1e-5)
        before["pos"][inside], before["id"][inside] = (
            after["pos"][inside],
            after["id"][inside],
        )
        assert after.tobytes() == before.tobytes()
    empty = any_ctx.empty(0, made.Particle)
    y, z = launch(made.step, empty, ctx=any_ctx, **given)
    assert (y.numpy().shape, z.numpy().shape) == ((0, 3), (0,))


def test_wrong_arguments(ctx: Context, made: Any) -> None:
    p, given = ctx.vector(particles(made, (3,)), made.Particle), scalars(made)
    light = given["light"]
    wrong: tuple[tuple[str, Any, Any, str], ...] = (
        ("light", made.StepUniform, DtypeError, "'light' is <class"),
        ("light", {"gain": 1}, DtypeError, "(dict); expected a Light"),
        ("all", light, DtypeError, "expected a Vector_"),
        (
            "turn",
            np.eye(4),
            ShapeError,
            "'turn' is an array of shape (4, 4); expected 3 x",
        ),
        ("turn", ((1, 2, 3), (1, 2), (1, 2, 3)), ShapeError, "'turn[1]' is (1, 2)"),
        ("turn", None, ShapeError, "'turn' is None; expected 3 x 3 values"),
        ("tall", np.full((2, 4), 1e39), UniformRangeError, "'tall[0][0]' is 1e+39"),
        ("at", (1, -1), UniformRangeError, "'at[1]' is -1; u32 holds"),
        ("at", (1, 1.0), DtypeError, "'at[1]' is 1.0 (float)"),
    )
    for name, value, error, message in wrong:
        refuse(ctx, error, message, made.step, p, **{**given, name: value})
    floats = ctx.zeros(3, f32)
    text = "argument 'p' has f32 elements; expected Particle"
    refuse(ctx, DtypeError, text, made.step, floats, **given)
    text = "out 'y' has Particle elements; expected vec3f"
    refuse(ctx, DtypeError, text, made.step, p, out=(p, None), **given)
    text = "Make one by ctx.vector(p, Particle)"
    array: Any = particles(made, (3,))
    refuse(ctx, DtypeError, text, made.step, array, ctx=ctx, **given)
    y = ctx.wrap(p.buffer, 3, vec3f)
    refuse(ctx, AliasError, "overlap in memory", made.step, p, out=(y, None), **given)


def test_a_class_of_another_build_is_another_class(ctx: Context, made: Any) -> None:
    with built(SOURCE) as (step, copies):
        p = ctx.matrix(particles(made, (3, 2)), made.Particle)
        m, v = ctx.zeros(2, mat3x3h), ctx.zeros(3, vec2h)
        text = r"has built_\d+.Particle elements; expected built_\d+.Particle."
        with pytest.raises(DtypeError, match=text):
            launch(copies, p, m, v)
        given = scalars(made)
        own = ctx.zeros(3, step.inputs[0].element)
        text = r"\(built_\d+.Light\); expected a built_\d+.Light."
        with pytest.raises(DtypeError, match=text):
            launch(step, own, **given)


def test_a_uniform_layout_does_as_an_argument(any_ctx: Context, made: Any) -> None:
    p = any_ctx.vector(particles(made, (3,)), made.Particle)
    given = scalars(made)
    light = given["light"]
    layouts = {field.name: field.type for field in made.step.uniform.FIELDS}
    other: Any = layouts["light"]
    assert other is not made.Light
    other = other(*(getattr(light, f.name) for f in light.FIELDS))
    assert isinstance(other, made.Light)
    first = launch(made.step, p[:], ctx=any_ctx, **given)[1].numpy()
    second = launch(made.step, p[:], ctx=any_ctx, **{**given, "light": other})[
        1
    ].numpy()
    assert first.tobytes() == second.tobytes()


def test_f16_in_a_struct_asks_for_the_feature(made: Any) -> None:
    info = SimpleNamespace(f16=False)
    capabilities: Any = SimpleNamespace(info=info, lack_of=str)
    shaders: Any = None
    planner = Planner(capabilities, shaders)
    signature: Any = None
    for kernel, name in ((made.step, "light"), (made.copies, "m")):
        with pytest.raises(FeatureError, match=rf"'{name}' holds f16 .*shader-f16"):
            planner.plan(kernel, signature)


def test_the_uniform_struct_there_and_back(made: Any) -> None:
    given = scalars(made)
    uniform = made.step.uniform
    names = [field.name for field in uniform.FIELDS]
    values = {"n": 5, "twice": 0.5, **given}
    whole = uniform(**{name: values[name.rstrip("_")] for name in names})
    again = uniform.unpack(whole.pack())
    assert type(again.light) is made.Light
    assert uniform.unpack(again.pack()) == again
    assert again.pack() == whole.pack()
    packed = bytearray(uniform.SIZE)
    hosts = made.step.hosts(
        5, *(spec.fit(given[spec.name]) for spec in made.step.scalars)
    )
    uniform.pack_values_into(packed, 0, hosts)
    assert again.pack()[: uniform.FIELDS[-1].offset] == bytes(
        packed[: uniform.FIELDS[-1].offset]
    )
