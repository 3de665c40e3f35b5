"""Emitted bindings: how they call the runtime, and what they tell it."""

from __future__ import annotations

import inspect
import math
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kerngen.plan.adapter import AdapterInfo
from kerngen.plan.size import ONE, evaluate, holds
from kerngen.plan.tree import AffineTerm, Choice, cases_in, dispatches_in
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.errors import UniformRangeError
from kerngen.runtime.struct import UniformStruct
from tests.compile import emitted, loaded
from tests.emit.sources import SOURCE


class Recorder:
    """Stands for a kernel: notes how it is launched."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.calls: list[tuple[Any, ...]] = []

    def launch(self, *arguments: Any) -> tuple[Any, ...]:
        self.calls.append(arguments)
        outputs = [spec for spec in self.kernel.tensors if spec.access == "write"]
        return tuple(spec.name for spec in outputs)


def record(monkeypatch: pytest.MonkeyPatch, name: str) -> Recorder:
    module = loaded(SOURCE)
    recorder = Recorder(getattr(module, name))
    monkeypatch.setattr(module, name, recorder)
    return recorder


def test_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record(monkeypatch, "_ONE")
    call = loaded(SOURCE).one
    assert call("x", origin=(1, 2, 3), count=4, out="into", ctx="there") == "y"
    assert recorder.calls == [("there", ("x",), (0.5, (1, 2, 3), 4), ("into",))]


def test_several_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record(monkeypatch, "_SEVERAL")
    module = loaded(SOURCE)
    result = module.several("x", "t")
    assert result == ("total", "copy")
    assert (result.total, result.copy) == result
    module.several("x", "t", out=module.SeveralOutput("p", "q"))
    assert [call[3] for call in recorder.calls] == [None, ("p", "q")]


def test_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record(monkeypatch, "_UPDATE")
    assert loaded(SOURCE).update("x", step=3) is None
    assert recorder.calls == [(None, ("x",), (3,))]


def test_signatures() -> None:
    module = loaded(SOURCE)
    assert str(inspect.signature(module.one)).replace("'", "") == (
        "(x: Matrix[f32], *, alpha: float = 0.5, origin: tuple[float, float, float], "
        "count: int, out: Matrix[f32] | None = None, ctx: Context | None = None) "
        "-> Matrix[f32]"
    )
    assert str(inspect.signature(module.several)).replace("'", "") == (
        "(x: Vector[f32], t: Tensor[i32, Literal[5]], *, "
        "out: SeveralOutput | None = None, ctx: Context | None = None) -> SeveralOutput"
    )
    assert str(inspect.signature(module.one_reference)).replace("'", "") == (
        "(x: NDArray[Any], *, alpha: float = 0.5, origin: tuple[float, float, float], "
        "count: int) -> NDArray[Any]"
    )


def test_the_description_says_what_the_kernel_is() -> None:
    one, several = loaded(SOURCE)._ONE, loaded(SOURCE)._SEVERAL
    assert (one.name, one.origin) == ("one", "dsl/sample.kern:7")
    assert one.dims == ("m", "n")
    shown = [(s.name, s.element.__name__, s.axes, s.access) for s in several.tensors]
    assert shown == [
        ("x", "f32", ("n",), "read"),
        ("t", "i32", ("a", "b", "c", "d", "n"), "read"),
        ("total", "f32", (), "write"),
        ("copy", "f32", ("n",), "write"),
    ]
    scalars = [(s.name, s.element.__name__) for s in one.scalars]
    assert scalars == [("alpha", "f32"), ("origin", "vec3f"), ("count", "u32")]
    assert loaded(SOURCE)._UPDATE.tensors[0].access == "update"
    assert f"(sha256 {one.stamp})" in (loaded(SOURCE).__doc__ or "")
    assert one.reference is loaded(SOURCE).one_reference


def test_the_uniform_struct_holds_dims_scalars_and_hosts() -> None:
    struct_type = loaded(SOURCE).OneUniform
    offsets = [(field.name, field.offset) for field in struct_type.FIELDS]
    assert offsets == [
        *(("m", 0), ("n", 4), ("alpha", 8), ("origin", 16), ("count", 28)),
        *(("inverse", 32), ("parts", 36)),
    ]
    assert struct_type.SIZE == 48
    values = loaded(SOURCE)._ONE.hosts(7, 5, 0.1, (1.0, 2.0, 3.0), 3)
    assert values == (7, 5, 0.1, 1.0, 2.0, 3.0, 3, 1 / 0.1, 7 // 3 + 7 % 3)
    buffer = bytearray(48)
    struct_type.pack_values_into(buffer, 0, values)
    by_hand = struct.pack("<IIf4x3fIfi8x", 7, 5, 0.1, 1, 2, 3, 3, 10, 3)
    assert bytes(buffer) == by_hand
    assert struct_type.unpack(bytes(buffer)).pack() == by_hand


def test_hosts_divide_as_wgsl_does() -> None:
    values = loaded(SOURCE)._ONE.hosts(7, 5, 0.0, (1.0, 2.0, 3.0), 0)
    assert values[-2:] == (math.inf, 7)


def test_a_host_that_does_not_fit_is_named() -> None:
    module = loaded(SOURCE)
    values = module._ONE.hosts(7, 5, 1e-300, (1.0, 2.0, 3.0), 3)
    with pytest.raises(UniformRangeError, match=r"'OneUniform\.inverse'"):
        module.OneUniform.pack_values_into(bytearray(48), 0, values)


def test_guards_read_dims_scalars_and_the_adapter() -> None:
    update = loaded(SOURCE)._UPDATE
    assert update.guard_scalars == ("step",)
    (choice,) = update.body
    assert isinstance(choice, Choice)
    first, second, *_ = choice.cases
    adapter = AdapterInfo(16384, 256, subgroups=False, f16=False)
    small = replace(adapter, workgroup_bytes=512)
    assert holds(first.when, {"n": 8, "step": 3, **adapter.facts}) is True
    assert holds(first.when, {"n": 9, "step": 3, **adapter.facts}) is False
    assert holds(first.when, {"n": 8, "step": 2, **adapter.facts}) is False
    assert holds(first.when, {"n": 8, "step": 3, **small.facts}) is False
    assert holds(second.when, {"n": 2, "step": 3}) is True
    assert holds(second.when, {"n": 1, "step": 3}) is False


def test_group_counts_are_functions_of_the_dims() -> None:
    dispatches = dispatches_in(loaded(SOURCE)._UPDATE.body)
    counts = [evaluate(d.groups, {"n": n}) for d in dispatches for n in (0, 1, 4096)]
    assert counts[0] == 0
    assert all(count >= 1 for count in counts[1:3])


def test_a_kernel_named_like_a_builtin_breaks_no_other() -> None:
    text = """
        kernel min(x: f32[n]) -> y: f32[] { y = min[i] x[i]; }
        kernel max(x: f32[n]) -> y: f32[] { y = max[i] x[i]; }
        kernel abs(x: f32[n], k: i32) -> y: f32[n] { host a = abs(k); y[i] = abs(x[i]) + f32(a); }
        kernel float(x: f32[n], s: f32) -> y: f32[n] { y[i] = s * x[i]; }
        kernel min_reference(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }
        kernel MIN(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }
    """
    module = loaded(text)
    x = np.array([3, -4], np.float32)
    assert float(module.min_reference_(x)) == -4
    assert float(module.max_reference(x)) == 3
    assert module.abs_reference(x, k=-1).tolist() == [4, 5]
    assert module.float__reference(x, s=2.0).tolist() == [6, -8]
    assert module._ABS.hosts(2, -3) == (2, -3, 3)
    for dispatch in dispatches_in(module._MIN.body):
        assert evaluate(dispatch.groups, {"n": 5000}) >= 1
    for case in cases_in(module._MIN.body):
        assert all(evaluate(s.length, {"n": 5000}) >= 1 for s in case.scratch)


def test_the_header_names_source_and_hash() -> None:
    head = emitted(SOURCE).split('"""')[1]
    assert head.splitlines()[0] == "Many kinds of kernels."
    assert "Generated by kerngen from dsl/sample.kern (sha256 " in head
    assert "Do not edit." in head


def test_docstrings_have_shapes_defaults_and_the_source() -> None:
    doc = inspect.getdoc(loaded(SOURCE).one) or ""
    for line in (
        "One output.",
        "    x: f32[m, n]. The rows.",
        "    alpha: f32, 0.5 by default. The factor.",
        "    origin: vec3f.",
        "    y: f32[m, n].",
        "The source, dsl/sample.kern:7::",
    ):
        assert line in doc.splitlines()
    assert "y[i, j] = alpha * twice(x[i, j])" in doc
    assert "host inverse = 1 / alpha;" in doc
    changed = inspect.getdoc(loaded(SOURCE).update) or ""
    assert "    x: f32[n], changed in place." in changed.splitlines()


EDGES = """
    kernel nothing(x: f32[]) -> y: f32[] { y = x; }
    kernel thirds(x: f32[n, 3], w: f32[k]) -> y: f32[n] {
        y[i] = sum[q] w[q] * x[i, q];
    }
"""


def test_a_kernel_without_dims_and_scalars_has_no_struct_of_its_own() -> None:
    module = loaded(EDGES)
    assert module._NOTHING.uniform is UniformStruct
    assert module._NOTHING.hosts() == ()
    assert not hasattr(module, "NothingUniform")
    x = np.array(3, np.float32)
    y = module.nothing_reference(x)
    assert (y.tolist(), y.shape) == (3, ())
    assert not np.shares_memory(x, y)


def test_literal_axes_and_range_checks() -> None:
    thirds = loaded(EDGES)._THIRDS
    assert thirds.tensors[0].axes == ("n", 3)
    (check,) = thirds.checks
    assert (check.text, check.tensor, check.axis, check.extent) == ("q", "x", 1, 3)
    assert check.terms == (AffineTerm(ONE, "k"),)
