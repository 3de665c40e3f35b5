"""Opening a context: which adapter, with which limits and features."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from kerngen.plan.adapter import AdapterInfo
from kerngen.runtime.calls.call_plan import Capabilities
from kerngen.runtime.context import Context
from kerngen.runtime.device.adapter import (
    VARIABLE,
    Adapter,
    AdapterChoice,
    AdapterKind,
    adapter_kind,
    adapter_name,
    adapters,
    choice_of_environment,
)
from kerngen.runtime.device.backend import GpuBackend
from kerngen.runtime.device.gpu import Device, GPUDevice
from kerngen.runtime.device.native import load, unchecked_modules
from kerngen.runtime.errors import (
    ArgumentError,
    CheckedShadersWarning,
    NoAdapter,
    ReferenceFallbackWarning,
)
from kerngen.runtime.numpy_backend.backend import NumpyBackend

UNCHECKED = "KERNGEN_UNCHECKED"
"""The environment variable that leaves runtime checks out of shaders."""

FEATURES = ("shader-f16", "subgroup", "timestamp-query")
"""The features of WebGPU that a device is opened with, if its adapter has them."""

_OF_BOUND_SHADERS = (
    "shader-f64",
    "shader-int64",
    "shader-int64-atomic-min-max",
    "shader-int64-atomic-all-ops",
)
"""Features of wgpu-native, likewise: types that only shaders for `kerngen bind` may have."""

WEBGPU_LIMITS: Mapping[str, int] = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffers-per-shader-stage": 12,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-uniform-buffer-binding-size": 65536,
    "max-storage-buffer-binding-size": 134217728,
    "max-buffer-size": 268435456,
    "min-uniform-buffer-offset-alignment": 256,
    "min-storage-buffer-offset-alignment": 256,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroups-per-dimension": 65535,
}
"""The limits that WebGPU guarantees on each adapter: `open(limits=WEBGPU_LIMITS)`.

A program that runs with them fits the limits of any adapter.
"""

_DOCTOR = "'kerngen doctor' says what is missing"
_INSTALL = (
    f"{_DOCTOR}. Debian and Ubuntu have a software adapter: apt-get install "
    f"mesa-vulkan-drivers"
)

LLVMPIPE_TURNS = 65_500
"""The most turns of a loop on Mesa's llvmpipe, which leaves all loops without a word.

It counts the turns of all loops of an invocation together, up to 65,535.  The 35 turns less
are for the other loops of the same invocation, such as the one that joins partial results.
"""


def open(  # noqa: A001 - `kerngen.runtime.open` reads as what it does
    device: GPUDevice | None = None,
    *,
    adapter: str | int | None = None,
    limits: Mapping[str, int] | None = None,
    unchecked: bool | None = None,
) -> Context:
    """Open a context on the best adapter, or on the caller's own `wgpu.GPUDevice`.

    The best adapter is a GPU, else a software adapter, else NumPy, which is announced by a
    warning.  `adapter`, or the environment variable KERNGEN_ADAPTER, chooses another: by a
    kind, 'gpu', 'software' or 'reference', by a number of `adapters()`, or by both: 'gpu:1'
    is the second GPU.
    `limits` asks for other limits than the adapter's own, `WEBGPU_LIMITS` for one.

    `unchecked` leaves wgpu's own checks out of shaders, which kernels don't need; where
    they can't be left out, that is announced by a warning.  Without it, the environment
    variable KERNGEN_UNCHECKED decides: 1 is yes.
    """
    bare = _unchecked_by_environment() if unchecked is None else unchecked
    # 1. The caller's own device.
    if device is not None:
        if not hasattr(device, "adapter"):
            raise ArgumentError(
                f"open() takes a wgpu.GPUDevice, got {device!r}; "
                f"a kind of adapter is asked for by open(adapter=...)."
            )
        load()
        return _open_device(device, owned=False, unchecked=bare)
    # 2. NumPy, if that is asked for; wgpu is not loaded then.
    choice = (
        choice_of_environment() if adapter is None else AdapterChoice.parse(adapter)
    )
    if choice is not None and choice.kind == "reference":
        return _open_reference(unchecked=bare)
    # 3. An adapter: the chosen one, or the best.
    found, reason = _find_adapter(choice or AdapterChoice())
    if found is not None:
        made = request_device(found.of_wgpu, limits)
        return _open_device(made, owned=True, unchecked=bare)
    if choice is not None:
        raise _missing(choice, reason)
    # 4. NumPy in place of an adapter, as nothing was asked for.
    warnings.warn(
        f"No adapter was found ({reason}): kernels run as their NumPy reference, slowly. "
        f"{_INSTALL}.",
        ReferenceFallbackWarning,
        stacklevel=2,
    )
    return _open_reference(unchecked=bare)


def _missing(choice: AdapterChoice, reason: str) -> NoAdapter:
    """Return the error for a chosen adapter that the machine lacks."""
    others = " or ".join(each for each in get_args(AdapterKind) if each != choice.kind)
    which = f"adapter {choice}" if choice.number is not None else f"{choice} adapter"
    return NoAdapter(
        f"No {which} was found: {reason}. {VARIABLE}={others} asks for another, and so "
        f"does open(adapter=...); {_DOCTOR}."
    )


def _unchecked_by_environment() -> bool:
    value = os.environ.get(UNCHECKED, "").strip()
    if value in ("", "0", "1"):
        return value == "1"
    raise ArgumentError(f"{UNCHECKED} is '{value}'; expected 0 or 1.")


def _find_adapter(choice: AdapterChoice) -> tuple[Adapter | None, str]:
    """Return the chosen adapter and "", or None and the reason why there is none."""
    try:
        found = adapters()
    except NoAdapter as error:
        return None, str(error)
    names = ", ".join(f"{a.name} ({a.kind}, number {a.number})" for a in found)
    best = choice.pick(found)
    return best, "" if best else f"wgpu lists {names or 'none'}"


def request_device(adapter: Any, limits: Mapping[str, int] | None) -> GPUDevice:
    """Open a device with all features that kernels can use; raise NoAdapter if that is refused.

    `limits` are the required ones; None: the adapter's own.
    """
    features = [
        name for name in (*FEATURES, *_OF_BOUND_SHADERS) if name in adapter.features
    ]
    try:
        return adapter.request_device_sync(
            label="kerngen",
            required_features=features,
            required_limits=None if limits is None else dict(limits),
        )
    except (KeyError, RuntimeError) as error:
        raise NoAdapter(
            f"The adapter '{adapter_name(adapter)}' can't open a device: {error}"
        ) from error


def _open_reference(*, unchecked: bool) -> Context:
    if unchecked:
        _warn_of_checks("NumPy does the work")
    return Context(NumpyBackend())


def _warn_of_checks(reason: str) -> None:
    warnings.warn(
        f"Shaders keep their runtime checks: {reason}.",
        CheckedShadersWarning,
        # The line that called `open`: above this, `_open_*` and `open` itself.
        stacklevel=4,
    )


def _open_device(device: GPUDevice, *, owned: bool, unchecked: bool) -> Context:
    make_module = unchecked_modules(cast("Device", device)) if unchecked else None
    if isinstance(make_module, str):
        _warn_of_checks(make_module)
        make_module = None
    adapter = device.adapter
    name = adapter_name(adapter)
    backend = GpuBackend(
        cast("Device", device),
        capabilities(cast("Device", device), name, adapter.features),
        kind=adapter_kind(adapter),
        adapter_name=name,
        owned=owned,
        make_module=make_module,
    )
    return Context(backend)


def capabilities(
    device: Device, adapter_name: str, of_adapter: Iterable[str] = ()
) -> Capabilities:
    """Return a device's limits and features; `of_adapter` are the adapter's features."""
    limits, features = device.limits, set(device.features)
    return Capabilities(
        info=AdapterInfo(
            workgroup_bytes=limits["max-compute-workgroup-storage-size"],
            # Kernels' workgroups are one-dimensional: both limits hold along x.
            invocations=min(
                limits["max-compute-invocations-per-workgroup"],
                limits["max-compute-workgroup-size-x"],
            ),
            subgroups="subgroup" in features,
            f16="shader-f16" in features,
            tensor_bytes=min(
                limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]
            ),
        ),
        storage_buffers=min(
            limits["max-storage-buffers-per-shader-stage"],
            limits["max-bindings-per-bind-group"] - 1,  # one is the uniforms'
        ),
        binding_bytes=limits["max-storage-buffer-binding-size"],
        buffer_bytes=limits["max-buffer-size"],
        workgroups=limits["max-compute-workgroups-per-dimension"],
        uniform_alignment=limits["min-uniform-buffer-offset-alignment"],
        storage_alignment=limits["min-storage-buffer-offset-alignment"],
        timestamps="timestamp-query" in features,
        loop_turns=LLVMPIPE_TURNS if adapter_name.startswith("llvmpipe") else None,
        of_adapter=frozenset(of_adapter),
    )
