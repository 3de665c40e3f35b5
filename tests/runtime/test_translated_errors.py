"""What the device raises becomes an error of ours; what others raise stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, f32
from kerngen.runtime.device.gpu import translate
from kerngen_kernels import elementwise
from tests.conftest import open_software_context
from tests.runtime.kernels import internals


class InterruptedByUserError(Exception):
    """What a user's signal handler raises."""


class LateError(RuntimeError):
    """The same, derived from what wgpu raises."""


def submitting(ctx: Context) -> None:
    elementwise.relu(ctx.zeros(3, f32))
    ctx.submit()


def allocating(ctx: Context) -> None:
    ctx.zeros(77_777, f32)


@pytest.mark.parametrize(
    "error", [InterruptedByUserError("now"), TimeoutError("now"), LateError("now")]
)
@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("create_command_encoder", submitting),
        ("create_compute_pipeline", submitting),
        ("create_bind_group", submitting),
        ("create_buffer", allocating),
    ],
)
def test_what_a_signal_handler_raises_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    use: Callable[[Context], object],
    error: Exception,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with open_software_context() as ctx:
        with monkeypatch.context() as patch:
            patch.setattr(ctx.device, method, fail)
            # These were found when the context was opened.
            if method == "create_bind_group":
                patch.setattr(internals(ctx)._bind_groups, "_make", fail)
            if method == "create_command_encoder":
                patch.setattr(internals(ctx)._recorder, "_make_encoder", fail)
            with pytest.raises(type(error)) as caught:
                use(ctx)
        assert caught.value is error
        assert caught.value.__cause__ is None
        assert elementwise.relu(ctx.vector([-1.0, 2.0], f32)).numpy().tolist() == [0, 2]


def test_what_wgpu_raises_is_translated() -> None:
    wgpu: Any = import_module("wgpu")
    own: list[tuple[Exception, type[gpu.Error]]] = [
        (wgpu.GPUValidationError("bad"), gpu.ValidationError),
        (wgpu.GPUInternalError("bad"), gpu.ValidationError),
        (wgpu.GPUOutOfMemoryError("full"), gpu.OutOfMemoryError),
        (wgpu.GPUError("Parent device is lost"), gpu.DeviceLost),
    ]
    exact = KeyError, OverflowError, RuntimeError, TypeError, ValueError
    own += [(kind("bad"), gpu.ValidationError) for kind in exact]
    for error, expected in own:
        translated = translate(error, "to try")
        assert type(translated) is expected
        assert "to try" in str(translated)
