"""The contexts to time kernels on: with runtime checks in shaders, without, or both."""

from __future__ import annotations

import warnings
from typing import Literal

import kerngen.runtime as gpu
from kerngen.runtime import Context


def open_contexts(
    checks: Literal["on", "off", "both"],
) -> tuple[dict[str, Context], str]:
    """Return contexts by label, and a warning if one can't be opened.

    Where wgpu can't leave out its checks, the context with checks is opened instead.
    """
    contexts: dict[str, Context] = {}
    missing = ""
    if checks != "on":
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ctx = gpu.open(unchecked=True)
        missing = "; ".join(str(each.message) for each in caught)
        contexts["unchecked" if ctx.unchecked else "checked"] = ctx
    if checks != "off" and "checked" not in contexts:
        contexts["checked"] = gpu.open()
    return contexts, missing
