"""The C types that wgpu asks cffi for, parsed in one go.

wgpu names each type where it first needs it, and cffi then parses the name beside all
250 types that wgpu's header declares: some 5 ms each, and a context and its first call
need fifty.  Parsed together, they take as long as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

POINTERS = (
    "WGPUAdapterInfo *",
    "WGPUBindGroupDescriptor *",
    "WGPUBindGroupEntry *",
    "WGPUBindGroupLayoutDescriptor *",
    "WGPUBindGroupLayoutEntry *",
    "WGPUBufferBindingLayout *",
    "WGPUBufferDescriptor *",
    "WGPUBufferMapCallbackInfo *",
    "WGPUChainedStruct *",
    "WGPUChainedStruct * ",
    "WGPUCommandBufferDescriptor *",
    "WGPUCommandEncoderDescriptor *",
    "WGPUComputePassDescriptor *",
    "WGPUComputePipelineDescriptor *",
    "WGPUComputeState *",
    "WGPUConstantEntry *",
    "WGPUDeviceDescriptor *",
    "WGPUDeviceExtras *",
    "WGPUDeviceLostCallbackInfo *",
    "WGPUInstanceDescriptor *",
    "WGPULimits *",
    "WGPUNativeLimits *",
    "WGPUPassTimestampWrites *",
    "WGPUPipelineLayoutDescriptor *",
    "WGPUQuerySetDescriptor *",
    "WGPUQueueDescriptor *",
    "WGPURequestDeviceCallbackInfo *",
    "WGPUShaderModuleDescriptor *",
    "WGPUShaderSourceWGSL *",
    "WGPUUncapturedErrorCallbackInfo *",
    "intptr_t",
    "uint8_t *",
    "uintptr_t",
    "void *",
)
ARRAYS = (
    "WGPUAdapter[]",
    "WGPUBindGroupEntry[]",
    "WGPUBindGroupLayout[]",
    "WGPUBindGroupLayoutEntry[]",
    "WGPUCommandBuffer[]",
    "WGPUConstantEntry[]",
    "WGPUFeatureName[]",
    "char []",
    "uint32_t []",
    "uint8_t []",
)
FUNCTIONS = (  # types of callbacks
    "void(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)",
    "void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
    "void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
)
"""Names as wgpu writes them: a space more, as in two of `POINTERS`, is another to cffi."""


def parse_together(ffi: Any) -> None:
    """Parse the C types of this module at once, and enter them into the cache of `ffi`.

    All types are parsed as parameters of one function type:

        void(*)(WGPULimits *, ..., char (*)[], ..., void(*)(WGPUDevice const *, ...), ...)

    C turns arrays and functions into pointers in a parameter list, so these are written
    as pointers, and `_results` takes the arrays from behind them.  The types go into
    cffi's own cache, if that looks as expected.
    """
    known: dict[str, Any] = ffi._parsed_types  # noqa: SLF001 - there is no other way in
    if all(name in known for name in POINTERS):
        return
    parameters = ", ".join(
        (
            *POINTERS,
            *(array.replace("[", "(*)[") for array in ARRAYS),
            *(function.replace("(", "(*)(", 1) for function in FUNCTIONS),
        )
    )
    # "char []" becomes "char (*)[]"; "void(A, B)" becomes "void(*)(A, B)".
    together = f"void(*)({parameters})"
    function = ffi.typeof(together)
    # The cache has (type, whether it is a function's) by name; in a cffi of another form
    # nothing is entered, and wgpu parses each name by itself.
    if known.pop(together) == (function, False):
        known.update(_results(function.args))


def _results(types: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, bool]]]:
    """Yield each name with its type, and whether that is a function's."""
    first, second = len(POINTERS), len(POINTERS) + len(ARRAYS)
    for name, kind in zip(POINTERS, types[:first], strict=True):
        yield name, (kind, False)
    for name, kind in zip(ARRAYS, types[first:second], strict=True):
        yield name, (kind.item, False)
    for name, kind in zip(FUNCTIONS, types[second:], strict=True):
        yield name, (kind, True)
