"""What a test has used is told, with what the processes have that it has started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.sample import edit
from tests.project.tree import ROOT

CHEAP = """
import time

def test_sleeps():
    time.sleep(0.3)
"""
DEAR = """
import subprocess, sys

def test_starts_a_process():
    program = "import time\\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
"""


def test_the_dearest_files_are_printed(tmp_path: Path) -> None:
    edit(tmp_path / "test_cheap.py", CHEAP)
    edit(tmp_path / "test_dear.py", DEAR)
    edit(tmp_path / "none.ini", "[pytest]")
    options = ("-n", "1", "-p", "tests.spent", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", "none.ini"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    _, _, printed = done.stdout.partition("CPU seconds in tests")
    dear, cheap = (line.split() for line in printed.splitlines()[1:3])
    assert (dear[1], cheap[1]) == ("test_dear.py", "test_cheap.py")
    assert 0.3 <= float(dear[0]) < 0.9
    assert float(cheap[0]) < 0.3
