"""The adapters that the processes of a command use."""

from __future__ import annotations

import os

import kerngen.runtime as gpu
from kerngen.runtime.device.adapter import VARIABLE


def numbers() -> list[int | None]:
    """Return the numbers of all adapters that are of the best one's kind and model.

    The list is [None], for the default adapter, if KERNGEN_ADAPTER is set or there is
    no adapter.
    """
    if os.environ.get(VARIABLE, "").strip():
        return [None]
    found = gpu.adapters()
    models = [(each.kind, each.name) for each in found]
    return [
        each.number for each in found if models.index((each.kind, each.name)) == 0
    ] or [None]
