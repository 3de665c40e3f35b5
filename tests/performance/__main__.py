"""Time the suite and the ablations here; or make the page and pictures of what was kept.

    python -m tests.performance --out docs/performance/results-h200.json
    python -m tests.performance --out docs/performance/results-h200.json --only 'matmul_*'
    python -m tests.performance --report

What is timed is written after every case, so that an interrupted run is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path

import kerngen.runtime as gpu
from kerngen.bench.case import BenchCase
from kerngen.bench.choose import suite
from kerngen.bench.measure import SamplingLimits
from kerngen.bench.peers import find_peers
from kerngen.bench.ramp import ramp_of
from kerngen.bench.record import RunData, keep, timings_data
from kerngen.bench.run import Budget, on_peer, run
from kerngen.bench.session import begin, open_contexts
from tests.performance.ablation import AblationData, ablate
from tests.performance.page import (
    PerformanceData,
    merged,
    read,
    read_all,
    write_page,
)

SHARES = (0.65, 0.92)
"""When the suite and the ablations end, as parts of the budget; tinygrad has the rest."""

TINYGRAD = (
    ("matmul_nn", (4096, 4096, 4096)),
    ("softmax", (4096, 4096)),
    ("add", (2**26,)),
)
"""What is timed by tinygrad, too: cases by their names and sizes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or report."""
    parser = argparse.ArgumentParser(prog="tools/performance", description=__doc__)
    parser.add_argument("--out", type=Path, help="measure, and keep the results here")
    parser.add_argument("--budget", type=float, default=420.0, help="seconds for it")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="measure these kernels again, '*' being any characters; the file keeps the rest",
    )
    parser.add_argument("--quick", action="store_true", help="a size of each kernel")
    parser.add_argument("--report", action="store_true", help="make page and pictures")
    given = parser.parse_args(arguments)
    if given.out is not None:
        budget = Budget(given.budget)
        measure(given.out, budget, quick=given.quick, only=given.only)
    if given.report:
        from tests.performance.pictures import draw_all

        found = read_all()
        write_page(found)
        draw_all(found)
    if given.out is None and not given.report:
        parser.error("give --out FILE, --report or both")


def measure(
    file: Path, budget: Budget, *, quick: bool, only: Sequence[str] = ()
) -> None:
    """Run the suite and the ablations; keep what is found in a file.

    With names in `only`, their cases alone are run again, and the file keeps the rest.  Beside a
    GPU the usual peers take part, and NumPy where the processor runs the shaders.
    """
    earlier = read(file) if only else None
    ends = [Budget(budget.seconds * share, budget.begin) for share in SHARES]
    kept: list[AblationData] = []
    with ExitStack() as stack:
        contexts, _ = open_contexts("both")
        for ctx in contexts.values():
            stack.enter_context(ctx)
        kind = next(iter(contexts.values())).kind
        cases = chosen([*suite(kind, quick=quick)], only)
        peers = None if kind == "gpu" else ("numpy",)
        session = begin(contexts, peers, budget if only else ends[0], quick=quick)
        data: PerformanceData = {"run": session.found, "ablations": kept}
        for result in session.results(cases):
            say(result["name"], result["sizes"], result["timings"])
            keep(merged(earlier, session.found) if earlier else data, file)
    if earlier:
        return
    for each in ablate(ends[1]):
        kept.append(each)
        for row in each["rows"]:
            say(each["kernel"], each["sizes"], row)
        keep(data, file)
    if kind == "gpu":
        add_tinygrad(session.found, cases, budget)
        keep(data, file)


def chosen(cases: Sequence[BenchCase], names: Sequence[str]) -> list[BenchCase]:
    """Return the cases of some names, or all if no names are given.

    A name that no case has ends the program, with the names that there are.
    """
    for name in names:
        if not any(fnmatchcase(case.name, name) for case in cases):
            known = ", ".join(dict.fromkeys(case.name for case in cases))
            raise SystemExit(
                f"No case of the suite is called '{name}'. There are {known}."
            )
    names = names or ("*",)
    return [case for case in cases if any(fnmatchcase(case.name, n) for n in names)]


def add_tinygrad(found: RunData, cases: Sequence[BenchCase], budget: Budget) -> None:
    """Add tinygrad's timings of a few cases, or why there are none."""
    peers, absent = find_peers(["tinygrad"], "gpu")
    found["absent"] |= absent
    for peer in peers:
        found["contestants"].append(peer.name)
        found["versions"][peer.name] = peer.version
        effort = SamplingLimits(samples=5, launches=10, seconds=0.5)
        few = [c for c in cases if (c.name, (*c.sizes.values(),)) in TINYGRAD]
        with gpu.open() as ctx:
            results = [
                *run(few, {peer.name: on_peer(peer)}, effort, budget, ramp_of(ctx))
            ]
        for result in results:
            case = result.case
            for kept in found["results"]:
                if (kept["name"], kept["sizes"]) == (case.name, dict(case.sizes)):
                    kept["timings"] |= timings_data(result)
                    say(kept["name"], kept["sizes"], kept["timings"])


def say(*facts: object) -> None:
    """Print what was found, at once."""
    print(*facts, flush=True)


if __name__ == "__main__":
    main()
