"""The npm package at work in a browser: recording, views, errors, memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.browser import Browser
from tests.web.figures import RECORD

pytestmark = pytest.mark.web

BEGIN = """
import { softmax } from "http://HOST/generated/softmax.js";
import { add, axpy, scale } from "http://HOST/generated/elementwise.js";
import { matmul_nn } from "http://HOST/generated/matmul.js";
import { layernorm_parameter_gradients } from "http://HOST/generated/norm.js";
import { conv2d, conv2d_input_gradient } from "http://HOST/generated/conv.js";
const near = (a, b) => [...a].every((x, i) => Math.abs(x - b[i]) < 1e-5);
const counted = (object, name) => {
  const seen = { count: 0, end: () => delete object[name] };
  const own = object[name];
  object[name] = (...given) => { seen.count++; return own.apply(object, given); };
  return seen;
};
const thrown = (run) => { try { run(); } catch (error) { return `${error.name}: ${error.message}`; } };
"""


def run(page: Browser, body: str) -> Any:
    """Run the body of a function of the context, `ctx`."""
    return page.run(f"{BEGIN}export default async (ctx) => {{ {body} }};")


def test_a_chain_is_one_submission(production: Browser) -> None:
    found = run(
        production,
        """
        const x = ctx.tensor(new Float32Array([1, 2, 3, 4, 5, 6]), [2, 3]);
        const submissions = counted(ctx.device.queue, "submit");
        const y = await softmax(softmax(softmax(x))).read();
        submissions.end();
        return [submissions.count, [...y].slice(0, 3).reduce((a, b) => a + b)];
        """,
    )
    assert found == [1, pytest.approx(1.0)]


def test_ten_thousand_calls_need_no_more_than_the_first(production: Browser) -> None:
    made, groups, last = run(
        production,
        """
        const x = ctx.tensor(new Float32Array(256).fill(1), [4, 64]);
        const few = async (count) => {
          for (let i = 0; i < count; i++) ctx.scope(() => { softmax(softmax(x)); });
          await ctx.submit();
        };
        await few(2000);
        const made = ["createBuffer", "createBindGroup"].map((name) => counted(ctx.device, name));
        await few(10000);
        made.forEach((each) => each.end());
        return [...made.map((each) => each.count), (await softmax(x).read())[0]];
        """,
    )
    assert (made, groups, last) == (0, 0, pytest.approx(1 / 64))


def test_views_are_read_written_and_passed(firefox: Browser) -> None:
    found = run(
        firefox,
        """
        const data = Float32Array.from({ length: 12 }, (_, i) => i);
        const x = ctx.tensor(data, [4, 3]);
        const rows = x.rows(1, 3);
        const sum = add(rows.reshape([6]), rows.reshape([-1]));
        add(rows.reshape([6]), x.rows(2, 4).reshape([6]), { out: ctx.empty([6], "f32") });
        rows.write(new Float32Array([9, 9, 9, 8, 8, 8]));
        return [[...await sum.read()], [...await x.read()], sum.shape, rows.shape];
        """,
    )
    assert found == [
        [6, 8, 10, 12, 14, 16],
        [0, 1, 2, 9, 9, 9, 8, 8, 8, 9, 10, 11],
        [6],
        [2, 3],
    ]


def test_a_result_may_go_where_an_argument_of_the_buffer_is_not(
    firefox: Browser,
) -> None:
    """One buffer can't be read and written by a dispatch: a copy stands in."""
    found = run(
        firefox,
        """
        const x = ctx.tensor(new Float32Array([1, 2, 3, 4, 0, 0, 0, 0]), [2, 4]);
        add(x.rows(0, 1).reshape([4]), x.rows(0, 1).reshape([4]),
            { out: x.rows(1, 2).reshape([4]) });
        return [...await x.read()];
        """,
    )
    assert found == [1, 2, 3, 4, 2, 4, 6, 8]


def test_a_gradient_of_an_empty_output_is_zeros(firefox: Browser) -> None:
    """It would gather from the output's gradient."""
    found = run(
        firefox,
        """
        const k = ctx.zeros([1, 1, 3, 3], "f32");
        const out = ctx.tensor(new Float32Array([7, 7, 7, 7]), [1, 1, 2, 2]);
        const dy = ctx.zeros([1, 1, 0, 0], "f32");
        conv2d_input_gradient(k, dy, { h_len: 2, w_len: 2, out });
        return [...await out.read()];
        """,
    )
    assert found == [0, 0, 0, 0]


WRONG = {
    "matmul_nn(ctx.zeros([2, 3], 'f32'), ctx.zeros([4, 5], 'f32'))": (
        "ShapeError: matmul_nn (dsl/matmul.kern:LINE): argument 'b' has shape [4, 5]; "
        "expected [k=3, n]: k is 3 from 'a' axis 1."
    ),
    "softmax(ctx.zeros([2], 'f32'))": (
        "ShapeError: softmax (dsl/softmax.kern:7): argument 'x' has shape [2] (rank 1); "
        "expected [m, n] (rank 2)."
    ),
    "softmax([1, 2])": (
        "ContextError: softmax (dsl/softmax.kern:7): no argument is a tensor; pass "
        "{ ctx } to choose the context."
    ),
    "softmax(ctx.zeros([2, 2], 'i32'))": (
        "DtypeError: softmax (dsl/softmax.kern:7): argument 'x' has i32 elements; "
        "expected f32."
    ),
    "softmax(ctx.zeros([2, 2], 'f32'), { out: ctx.zeros([2, 3], 'f32') })": (
        "ShapeError: softmax (dsl/softmax.kern:7): out 'y' has shape [2, 3]; expected "
        "[m=2, n=2]."
    ),
    "(() => { const x = ctx.zeros([2, 2], 'f32'); softmax(x, { out: x }); })()": (
        "AliasError: softmax (dsl/softmax.kern:7): 'x' and 'y' overlap in memory, and "
        "'y' is written. Pass tensors that do not overlap."
    ),
    "ctx.tensor(new Float32Array(3), [2, 2])": "ShapeError: Expected 4 values, got 3.",
    "softmax(ctx.zeros([2, 2], 'f32'), ctx.zeros([2, 2], 'f32'))": (
        "ShapeError: softmax (dsl/softmax.kern:7): expected 1 tensors, got 2."
    ),
    "layernorm_parameter_gradients(ctx.zeros([2, 2], 'f32'), ctx.zeros([2, 2], 'f32'), "
    "{ out: { gain: ctx.zeros([2], 'f32') } })": (
        "ArgumentError: layernorm_parameter_gradients (dsl/norm.kern:LINE): there is no "
        "output 'gain'; there are dgain, dbias."
    ),
    "axpy(ctx.zeros([2], 'f32'), ctx.zeros([2], 'f32'), { out: ctx.zeros([2], 'f32') })": (
        "ArgumentError: axpy (dsl/elementwise.kern:LINE): there is no option 'out'; "
        "there are alpha, ctx."
    ),
    "ctx.zeros(5, 'f32')": "ShapeError: A shape is an array of integers, got 5.",
    "ctx.tensor(undefined, [2], 'f32')": "ShapeError: Expected 2 values, got undefined.",
    "ctx.tensor([1, 256], [2], 'u8')": (
        "DtypeError: The array holds 256, which no u8 can."
    ),
    "ctx.tensor([65520], [1], 'f16')": (
        "DtypeError: The array holds a number beyond the range of f16."
    ),
    "ctx.zeros([4], 'f32').reshape([1.6, 2.5])": (
        "ShapeError: Lengths are integers from 0 to 2^31 - 1, not [1.6, 2.5]."
    ),
    "ctx.zeros([1], 'f32').reshape([-1, -1, -1])": (
        "ShapeError: 1 elements do not fill the shape [-1, -1, -1]."
    ),
    "ctx.zeros([4], 'f32').reshape([-1, 3])": (
        "ShapeError: 4 elements do not fill the shape [-1, 3]."
    ),
    "ctx.zeros([4], 'f32').reshape([3])": (
        "ShapeError: 4 elements do not fit the shape [3]."
    ),
    "ctx.zeros([4], 'f32').reshape()": (
        "ShapeError: A shape is an array of integers, got undefined."
    ),
    "ctx.zeros([4], 'f32').rows(0.5, 2)": (
        "ShapeError: Rows 0.5:2 are not within 0:4."
    ),
    "ctx.zeros([2], softmax)": (
        'DtypeError: Expected an element type ("f32", "f16", "i32", "u32", "vec3f", ...) '
        "or the object of a struct, got a Function."
    ),
    "ctx.zeros([2], 'f64')": (
        'DtypeError: Expected an element type ("f32", "f16", "i32", "u32", "vec3f", ...) '
        "or the object of a struct, got f64."
    ),
    "(() => { const x = ctx.zeros([2, 2], 'f32'); x.free(); softmax(x); })()": (
        "StateError: Tensor(f32[2, 2]) was freed."
    ),
    "scale(ctx.zeros([2], 'f32'), { alpha: 1e39 })": (
        "UniformRangeError: scale (dsl/elementwise.kern:LINE): scalar argument 'alpha' is "
        "1e+39; f32 holds -3.4028234663852886e+38 to 3.4028234663852886e+38."
    ),
    "scale(ctx.zeros([2], 'f32'), { alpha: '1' })": (
        "DtypeError: scale (dsl/elementwise.kern:LINE): scalar argument 'alpha' is "
        '"1"; expected a number (f32).'
    ),
    "scale(ctx.zeros([2], 'f32'), 2)": (
        "ShapeError: scale (dsl/elementwise.kern:LINE): expected 1 tensors, then scalars by "
        "name, as { alpha }; got [Tensor(f32[2]), 2]."
    ),
    "softmax(ctx.zeros([2, 2], 'f32'), {}, 1)": (
        "ShapeError: softmax (dsl/softmax.kern:7): expected 1 tensors, then options, as "
        "{ out, ctx }; got [Tensor(f32[2, 2]), {  }, 1]."
    ),
    "softmax(ctx.zeros([2, 2], 'f32'), { ctx: Promise.resolve(ctx) })": (
        "ContextError: softmax (dsl/softmax.kern:7): ctx is a Promise; expected a context, "
        "as await open() returns it."
    ),
    "scale(ctx.zeros([2], 'f32'), { alpha: null })": (
        "DtypeError: scale (dsl/elementwise.kern:LINE): scalar argument 'alpha' is null; "
        "expected a number (f32)."
    ),
    "scale(ctx.zeros([2], 'f32'), { alpha: [1n, NaN, undefined] })": (
        "DtypeError: scale (dsl/elementwise.kern:LINE): scalar argument 'alpha' is "
        "[1n, NaN, undefined]; expected a number (f32)."
    ),
    "scale(ctx.zeros([2], 'f32'), { alpha: ctx.zeros([], 'f32') })": (
        "DtypeError: scale (dsl/elementwise.kern:LINE): scalar argument 'alpha' is "
        "Tensor(f32[]); expected a number (f32)."
    ),
    "(() => { const a = { of: {} }; a.of.a = a; scale(ctx.zeros([2], 'f32'), { alpha: a }); })()": (
        "DtypeError: scale (dsl/elementwise.kern:LINE): scalar argument 'alpha' is "
        "{ of: { a: { of: { a: an Object } } } }; expected a number (f32)."
    ),
    "scale(ctx.zeros([2], 'f32'), { beta: 1 })": (
        "ArgumentError: scale (dsl/elementwise.kern:LINE): there is no option 'beta'; "
        "there are alpha, out, ctx."
    ),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls_are_explained_as_in_python(firefox: Browser, call: str) -> None:
    said = run(firefox, f"return thrown(() => {call});")
    start, _, end = WRONG[call].partition("LINE")
    assert said.startswith(start)
    assert said.endswith(end)


def test_production_explains_them_a_moment_later(production: Browser) -> None:
    """By texts that it loads with the first error."""
    calls = ", ".join(f"() => {call}" for call in WRONG)
    found = run(
        production,
        f"""
        const errors = [];
        for (const call of [{calls}])
          try {{ call(); }} catch (error) {{ errors.push(error); }}
        for (let i = 0; i < 100 && errors[0].message.startsWith("axes ("); i++)
          await new Promise((done) => setTimeout(done, 20));
        return errors.map((error) => `${{error.name}}: ${{error.message}}`);
        """,
    )
    assert len(found) == len(WRONG)
    for said, text in zip(found, WRONG.values(), strict=True):
        start, _, end = text.partition("LINE")
        assert said.startswith(start)
        assert said.endswith(end)


def test_after_an_error_the_next_call_works(firefox: Browser) -> None:
    found = run(
        firefox,
        """
        const x = ctx.tensor(new Float32Array([1, 1]), [1, 2]);
        const y = softmax(x);
        thrown(() => softmax(x, { out: x }));
        return [...await softmax(y).read()];
        """,
    )
    assert found == [0.5, 0.5]


def test_a_shader_that_is_missing_is_said_where_one_waits(firefox: Browser) -> None:
    found = run(
        firefox,
        """
        const { launch } = await import("http://HOST/dist/launch.js");
        const shader = (name) => new URL(`http://HOST/none/${name}.wgsl`);
        const gone = { ...softmax.kernel, shader };
        const x = ctx.tensor(new Float32Array([1, 1]), [1, 2]);
        const text = await launch(gone, [x]).read().catch((error) => error.message);
        return [text, [...await softmax(x).read()]];
        """,
    )
    text, after = found
    assert "Can't read the shader" in text
    assert "(404)" in text
    assert after == [0.5, 0.5]


def test_a_lost_device_is_said(firefox: Browser) -> None:
    found = run(
        firefox,
        """
        const { open } = await import("kerngen");
        const own = await open();
        const x = own.zeros([2, 2], "f32");
        own.device.destroy();
        await own.device.lost;
        await new Promise((done) => setTimeout(done, 0));
        return [thrown(() => softmax(x)),
                await x.read().catch((error) => error.name),
                thrown(() => softmax(ctx.zeros([1, 1], "f32"))) ?? "fine"];
        """,
    )
    assert found[0].startswith("DeviceLost: The device is lost (")
    assert found[1:] == ["DeviceLost", "fine"]


def test_ones_own_device_and_buffer(firefox: Browser) -> None:
    found = run(
        firefox,
        """
        const { Context } = await import("kerngen");
        const own = new Context(ctx.device);
        const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
        const buffer = ctx.device.createBuffer({ size: 16, usage });
        ctx.device.queue.writeBuffer(buffer, 0, new Float32Array([1, 2, 3, 4]));
        const x = own.wrap(buffer, [4], "f32");
        const bad = ctx.device.createBuffer({ size: 16, usage: GPUBufferUsage.STORAGE });
        return [[...await add(x, x).read()], thrown(() => own.wrap(bad, [4], "f32")),
                thrown(() => add(x, ctx.zeros([4], "f32")))];
        """,
    )
    assert found[0] == [2, 4, 6, 8]
    assert found[1].startswith("ArgumentError: A buffer needs the usages")
    assert "belongs to another context" in found[2]


@pytest.mark.nightly
def test_a_call_takes_few_microseconds_more_than_webgpu_alone(
    chromium: Browser,
) -> None:
    more: float = chromium.run(RECORD)
    assert 0 < more < 5
