"""Contexts without wgpu's runtime checks in shaders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, f32
from kerngen.runtime.device import direct, native
from kerngen.runtime.device.native import unchecked_modules
from tests.conftest import open_software_context
from tests.runtime.kernels import AXPY, BROKEN, launch

WILD = """
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
var<workgroup> shared_words: array<u32, 4>;
@compute @workgroup_size(1)
fn main() {
    shared_words[3] = 7u;
    x[1] = shared_words[x[0]];
}
"""


def axpy(ctx: Context) -> None:
    """Run a kernel."""
    x = ctx.vector([1.0, 2.0], f32)
    (z,) = launch(AXPY, x, x, alpha=2.0)
    np.testing.assert_array_equal(z.numpy(), [3, 6])


def test_a_context_without_checks_runs_kernels() -> None:
    with gpu.open(adapter="software", unchecked=True) as ctx:
        assert ctx.unchecked
        axpy(ctx)
    with open_software_context() as ctx:
        assert not ctx.unchecked


def test_checked_and_unchecked_pipelines_are_kept_apart() -> None:
    with open_software_context() as checked:
        bare = gpu.open(checked.device, unchecked=True)
        axpy(checked)
        axpy(bare)
        assert bare.counters.pipelines_created == 1
        again = gpu.open(checked.device, unchecked=True)
        axpy(again)
        assert again.counters.pipelines_created == 0
        assert again.unchecked


def test_modules_differ_in_their_checks_alone(ctx: Context) -> None:
    """Seen in what a shader does whose subscript is out of its array."""

    def word(make: Any) -> int:
        device: Any = ctx.device
        module = make(label="wild", code=WILD)
        pipeline = device.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": "main"}
        )
        buffer = device.create_buffer_with_data(
            data=np.array([5, 0], np.uint32), usage=0x80 | 0x4
        )
        group = device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0),
            entries=[{"binding": 1, "resource": {"buffer": buffer}}],
        )
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(1)
        compute.end()
        device.queue.submit([encoder.finish()])
        return int(np.frombuffer(device.queue.read_buffer(buffer), np.uint32)[1])

    assert word(ctx.device.create_shader_module) == 7
    make = unchecked_modules(ctx.device)
    assert not isinstance(make, str)
    assert word(make) != 7


def test_a_shader_that_is_wrong_is_refused_all_the_same() -> None:
    with gpu.open(adapter="software", unchecked=True) as ctx:
        with pytest.raises(gpu.ValidationError, match="compile the shader of 'broken'"):
            launch(BROKEN, ctx.vector([1, 2], gpu.u32))
        axpy(ctx)


def test_an_untested_wgpu_keeps_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgpu.version_info", (9, 9, 0))
    with pytest.warns(gpu.CheckedShadersWarning, match="was not tested") as caught:
        ctx = gpu.open(adapter="software", unchecked=True)
    assert caught[0].filename == __file__
    with ctx:
        assert not ctx.unchecked
        axpy(ctx)


def test_another_backend_keeps_the_checks(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "API", "elsewhere")
    assert native.tick_seconds(ctx.device) == 1e-9
    assert direct.encoders_of(ctx.device) == ctx.device.create_command_encoder
    with pytest.warns(gpu.CheckedShadersWarning, match="not of wgpu-native"):
        assert not gpu.open(ctx.device, unchecked=True).unchecked
    with pytest.warns(gpu.CheckedShadersWarning, match="NumPy does the work"):
        assert not gpu.open(adapter="reference", unchecked=True).unchecked


@pytest.mark.parametrize(
    ("value", "unchecked"), [("1", True), ("0", False), ("", False)]
)
def test_the_environment_may_decide(
    value: str, unchecked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNGEN_UNCHECKED", value)
    with gpu.open(adapter="software") as ctx:
        assert ctx.unchecked == unchecked
        assert not gpu.open(ctx.device, unchecked=False).unchecked


def test_the_environment_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNGEN_UNCHECKED", "maybe")
    with pytest.raises(gpu.ArgumentError, match="KERNGEN_UNCHECKED is 'maybe'"):
        gpu.open(adapter="software")
