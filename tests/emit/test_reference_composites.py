"""How references treat vectors, matrices and structs, beside what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from tests.compile import emitted, loaded
from tests.language.records import zeros

COPIES = """
    struct Body { pos: vec3f, frame: mat3x3f }
    fn same(m: mat2x3f) -> mat2x3f { m }
    kernel f(p: Body[n], m: mat2x3f[n], v: vec4f[n])
        -> a: vec3f[n], b: mat2x3f[n], c: mat3x2f[n], d: vec2f[n], e: vec3f[n], g: mat2x3f[n] {
        a[i] = p[i].pos;
        b[i] = same(m[i]);
        c[i] = transpose(m[i]);
        d[i] = v[i].xy;
        e[i] = m[i][1];
        g[i] = m[i];
    }
"""


def test_outputs_are_new_arrays() -> None:
    module = loaded(COPIES)
    p, m = np.zeros(3, module.Body.DTYPE), np.zeros((3, 2, 3), np.float32)
    v = np.zeros((3, 4), np.float32)
    for output in module.f_reference(p, m, v):
        assert not any(np.shares_memory(output, given) for given in (p, m, v))


HALVES = """
    struct Light { power: f16, tint: vec2h }
    kernel f(x: vec2f[n], light: Light) -> a: f32[n], b: vec2f[n] {
        a[i] = x[i].x * light.power;
        b[i] = x[i] * light.tint;
    }
"""


@pytest.mark.parametrize(
    ("real", "half"), [(np.float32, np.float16), (np.float64, np.float64)]
)
def test_halves_of_parameters_are_rounded_unless_in_double(
    real: Any, half: Any
) -> None:
    module = loaded(HALVES)
    a, b = module.f_reference(
        np.ones((1, 2), real), light=module.Light(0.1, (0.2, 0.3))
    )
    assert a.tolist() == [float(half(0.1))]
    assert b.tolist() == [[float(half(0.2)), float(half(0.3))]]


def test_arguments_may_be_of_numpys_types() -> None:
    """NumPy's own doubles would make all else double."""
    text = """
        kernel f(x: vec3f[n], v: vec3f, m: mat2x3f, k: vec2i) -> a: vec3f[n], b: i32[n] {
            host s = v.y + m[1].z;
            a[i] = x[i] * s * v.x + m[0];
            b[i] = k.y + i;
        }
    """
    v, m = np.array([1.0, 2.0, 3.0]), np.arange(6.0).reshape(2, 3)
    x, k = np.ones((2, 3), np.float32), np.array([3, 4])
    a, b = loaded(text).f_reference(x, v=v, m=m, k=k)
    assert (a.dtype, b.dtype) == (np.float32, np.int32)
    assert a.tolist() == [[7, 8, 9]] * 2
    assert b.tolist() == [4, 5]


def test_sums_of_scalar_products_are_einsum() -> None:
    text = """
        struct P { trail: f32[3] }
        kernel f(a: f32[m, k], v: vec2f[k], p: P[k]) -> y: f32[m], z: f32[m, 3] {
            y[i] = sum[p_] a[i, p_] * v[p_].x;
            z[i, q] = sum[p_] a[i, p_] * p[p_].trail[q];
        }
    """
    assert 'np.einsum("ip,p->i", a, v[..., 0], optimize=True)' in emitted(text)
    assert '"ip,pq->iq", a, real(p["trail"]), optimize=True' in emitted(text)


def test_axes_of_components_are_written_once() -> None:
    text = """
        kernel f(x: vec3f[n], m: mat2x3f[n]) -> a: vec3f[n], b: f32[n, n] {
            a[i] = x[i] * x[i].z + m[i][1].y;
            b[i, j] = x[i].z * m[j][0].x;
        }
    """
    assert "x * x[..., 2, None] + m[..., 1, 1, None]" in emitted(text)
    assert "x[:, None, 2] * m[..., 0, 0]" in emitted(text)


NAMES = """
    struct body { value: vec3f[2], lambda: f32, DTYPE: i32 }
    kernel f(p: body[n], item: body, real: vec3f[n], geometry: vec3f) -> body: body[n] {
        body[i].value[k] = p[i].value[1 - k] + item.value[(i + k) % 2] * real[i];
        body[i].lambda = p[i].lambda + dot(geometry, real[i]);
        body[i].DTYPE = p[i].DTYPE + item.DTYPE;
    }
"""


def test_names_that_python_numpy_or_references_use() -> None:
    module = loaded(NAMES)
    p, real = zeros(module.body.DTYPE, 3), np.ones((3, 3), np.float32)
    p["value"]["value"][:, 1], p["DTYPE_"] = 5, 7
    item = module.body(value=((1, 1, 1), (2, 2, 2)), lambda_=0.0, DTYPE_=4)
    got = module.f_reference(p, real, item=item, geometry_=(1, 2, 3))
    assert got["value"]["value"][..., 0].tolist() == [[6, 2], [7, 1], [6, 2]]
    assert got["lambda_"].tolist() == [6, 6, 6]
    assert got["DTYPE_"].tolist() == [11, 11, 11]


def test_structs_of_another_order_are_refused() -> None:
    module = loaded(COPIES)
    other = np.dtype([("frame", "<f4", (3, 3)), ("pos", "<f4", (3,))])
    m, v = np.zeros((3, 2, 3), np.float32), np.zeros((3, 4), np.float32)
    with pytest.raises(
        gpu.DtypeError, match=r"^f \(.*\): argument 'p' has .* Body\.DTYPE, as"
    ):
        module.f_reference(np.zeros(3, other), m, v)
    with pytest.raises(gpu.DtypeError, match="argument 'p' is a list; expected an"):
        module.f_reference([], m, v)


def test_arrays_of_other_components_are_refused() -> None:
    module = loaded(COPIES)
    p = np.zeros(3, module.Body.DTYPE)
    for shape in ((3, 3, 2), (3,), (), (3, 6)):
        with pytest.raises(
            gpu.ShapeError, match=r"^f \(.*\): argument 'm' .* of mat2x3f\.$"
        ):
            module.f_reference(p, np.zeros(shape, np.float32), np.zeros((3, 4)))
    with pytest.raises(gpu.ShapeError, match=r"expected \(n=3\)|expected \(n=3,\)"):
        module.f_reference(p, np.zeros((2, 2, 3), np.float32), np.zeros((3, 4)))
