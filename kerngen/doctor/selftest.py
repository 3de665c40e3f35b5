"""A program that runs the self-test on one adapter; it runs in its own process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import TypedDict

import kerngen.runtime as gpu
from kerngen.doctor.checks import CHECKS, Skip, Wrong
from kerngen.doctor.probe_process import reply
from kerngen.runtime import Context
from kerngen.runtime.device.adapter import list_adapters
from kerngen.runtime.device.opening import request_device


class CheckData(TypedDict):
    """The result of a check as data: 'ok', 'failed' or 'skipped', and the reason."""

    name: str
    status: str
    detail: str
    seconds: float


def main() -> None:
    """Reply with the results of all checks on the adapter."""
    adapter = list_adapters()[int(sys.argv[1])]
    with gpu.open(request_device(adapter, None)) as ctx:
        reply([_run(name, check, ctx) for name, check in CHECKS.items()])


def _run(name: str, check: Callable[[Context], str], ctx: Context) -> CheckData:
    started = perf_counter()
    try:
        status, detail = "ok", check(ctx)
    except Skip as skip:
        status, detail = "skipped", str(skip)
    except Wrong as wrong:
        status, detail = "failed", str(wrong)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        lines = str(error).strip().splitlines() or [""]
        status, detail = "failed", f"{type(error).__name__}: {lines[0]}"
    seconds = round(perf_counter() - started, 3)
    return {"name": name, "status": status, "detail": detail, "seconds": seconds}
