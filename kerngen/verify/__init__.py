"""Verification: every way to run a kernel is compared with its equations in float64.

`meaning` computes a kernel's results by the language alone, in float64, with a bound on the
error of an f32 implementation.  `ways` forces one variant of one schedule.  `calls` makes
random calls, `trial` runs them between guard zones, and `campaign` does so for every kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def verify(
    source: str | Path,
    kernel: str = "",
    *,
    seed: int = 0,
    examples: int = 20,
    budget: float = 120.0,
    schedule: str = "",
    adapter: str | int | None = None,
) -> dict[str, Any]:
    """Verify the kernels of a program as `kerngen verify` does, and return its report.

    Arguments and report are plain data, so that a pool of processes can run it, on this
    machine or on others; `merged` makes one report of those of several seeds:

        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            tasks = [pool.submit(verify, text, seed=seed) for seed in range(8)]
            report = merged([task.result() for task in tasks])

    Args:
        source: The text of a program, or the `Path` of a `.kern` file.
        kernel: Only the kernel of this name.
        seed: Another seed generates other calls.
        examples: Calls for each way to run a kernel.
        budget: Seconds for all of them.
        schedule: Only ways whose name contains this.
        adapter: As for `kerngen.runtime.open`: a kind, a number, or both as 'gpu:1'.

    Raises:
        CompileError: If the program is wrong.
        UnknownNameError: If there is no such kernel, or no such schedule.
        NoAdapter: If there is no adapter.
    """
    # Imported here because the modules of this folder are imported without hypothesis.
    from kerngen.verify.farm import VerifyOptions, verify_source  # noqa: PLC0415

    asked = VerifyOptions(seed, kernel, schedule, examples, budget, adapter)
    return verify_source(source, asked)


def merged(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reports of several seeds as one: calls add up, and a wrong one counts.

    A report that comes twice, as from a task that was run again, counts once.

    Raises:
        ArgumentError: If there are none.
    """
    from kerngen.verify import farm  # noqa: PLC0415 - as above

    return farm.merged(reports)


__all__ = ["merged", "verify"]
