"""A farm: kernels verified with many seeds by Dask's workers, also if some of them die.

    pip install "distributed>=2024.8"
    python -m examples.farm kernels/layers.kern --seeds 16 --workers 4

`--kill` ends a worker in the middle: Dask runs its task again on another.  With a cluster,
pass `--scheduler tcp://...`, and give the text of a program that needs no other file.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, Future, as_completed
from importlib import import_module
from pathlib import Path
from typing import Any

from kerngen.verify import merged, verify


def main(arguments: Sequence[str]) -> int:
    """Return 0 if all that was run is right, 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m examples.farm")
    parser.add_argument(
        "file", type=Path, help="a program; its text goes to the workers"
    )
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler", help="of a cluster that is there, as tcp://...")
    parser.add_argument(
        "--kill", action="store_true", help="end a worker in the middle"
    )
    given = parser.parse_args(arguments)
    dask: Any = import_module("distributed")
    # A worker is a process with one thread: hypothesis counts on having it for itself.
    cluster = given.scheduler or dask.LocalCluster(
        n_workers=given.workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
    )
    with dask.Client(cluster) as client:
        # Not pure: else two equal tasks would run once.
        executor: Executor = client.get_executor(pure=False)
        text = given.file.read_text("utf-8")
        tasks = [
            executor.submit(verify, text, seed=seed, examples=given.examples)
            for seed in range(given.seeds)
        ]
        if given.kill:
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            print(f"killed the worker of process {victim}")
        report = merged([_done(task) for task in as_completed(tasks)])
    for row in report["results"]:
        way = " ".join((row["kernel"], row["stage"], row["strategy"], row["variant"]))
        print(f"{way}: {row['calls']} calls, {row['verdict']}")
    print(f"{report['adapter']}, seeds {report['seeds']}")
    return int(any(row["verdict"] == "wrong" for row in report["results"]))


def _done(task: Future[dict[str, Any]]) -> dict[str, Any]:
    report = task.result()
    print(f"seed {report['seed']}: {len(report['results'])} ways", flush=True)
    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
