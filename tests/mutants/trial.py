"""One mutant at a time in a copy of the tree, and whether the tests notice it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, final

from .belonging import own_tests, wider_tests
from .mutations import Mutant

_PATIENCE: Final = 4
"""How many times as long as before a change tests may take: mutants loop for ever."""

_START: Final = 60.0
"""Seconds on top of that, as a busy machine may just have been idle."""


@final
class Outcome(Enum):
    """What the tests make of a mutant."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


class BaselineError(Exception):
    """Tests fail before anything is changed, or there are none."""


def copy_tree(root: Path, to: Path) -> None:
    """Copy what git would: files that it tracks, and new ones that it does not ignore."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True)
    for name in {*listed.stdout.split("\0")} - {""}:
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


@final
@dataclass
class Bench:
    """A copy of the tree, and how long tests take in it that see no change."""

    tree: Path
    wider: bool
    _seconds: dict[frozenset[str], float] = field(default_factory=dict)

    def examine(self, mutant: Mutant) -> Outcome:
        """Run the tests that belong to a mutant's module, until one notices it."""
        module = Path(mutant.path)
        stages = [own_tests(self.tree, module)]
        stages += [wider_tests(self.tree, module.parts[1])] if self.wider else []
        for tests in filter(None, stages):
            limit = _PATIENCE * self._baseline(tests) + _START
            outcome = self._changed(mutant, tests, limit)
            if outcome is not Outcome.SURVIVED:
                return outcome
        return Outcome.SURVIVED

    def _baseline(self, tests: Sequence[str]) -> float:
        key = frozenset(tests)
        if key not in self._seconds:
            start = time.monotonic()
            # This also compiles all modules: mutants are compiled in memory alone.
            if _run(self.tree, tests, None) is not Outcome.SURVIVED:
                raise BaselineError(f"These fail without a change: {' '.join(tests)}")
            self._seconds[key] = time.monotonic() - start
        return self._seconds[key]

    def _changed(self, mutant: Mutant, tests: Sequence[str], limit: float) -> Outcome:
        file = self.tree / mutant.path
        status = file.stat()
        try:
            file.write_bytes(mutant.changed)
            # Python takes a compiled module whose source has the same size and second.
            os.utime(file, (0, 0))
            return _run(self.tree, tests, limit, PYTHONDONTWRITEBYTECODE="1")
        finally:
            file.write_bytes(mutant.source)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _run(
    tree: Path, tests: Sequence[str], limit: float | None, **variables: str
) -> Outcome:
    """Run tests until the first one fails."""
    # Found before what an editable install finds, which is the tree that was copied.
    path = os.pathsep.join([str(tree), str(tree / "generated")])
    words = [sys.executable, "-m", "pytest", "-qx", "--tb=no", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [*words, *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return Outcome.CAUGHT if process.wait(limit) else Outcome.SURVIVED
        except subprocess.TimeoutExpired:
            return Outcome.TIMED_OUT
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
