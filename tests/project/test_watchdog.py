"""Runs of tests end, and say which tests hung, also where pytest-timeout can't end them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.sample import edit
from tests.project.tree import ROOT

CONFTEST = """
import os
from tests.watchdog import Watchdog
watchdog = Watchdog(100)
def pytest_runtest_logstart():
    watchdog._patience = 1
def pytest_configure(config):
    if hasattr(config, "workerinput"):
        os.setsid()
    else:
        config.pluginmanager.register(watchdog)
"""
TESTS = """
import ctypes, os, time
def test_it():
    {}
"""
SETTINGS = """
[pytest]
timeout = 1
timeout_method = thread
"""
HANGS = {
    "keeps the interpreter's lock": "ctypes.PyDLL(None).sleep(600)",
    "leaves a child with its pipe": "os.fork() and os._exit(1); time.sleep(600)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sessions")
@pytest.mark.parametrize("how", HANGS)
def test_a_run_that_hangs_ends(how: str, tmp_path: Path) -> None:
    edit(tmp_path / "conftest.py", CONFTEST)
    edit(tmp_path / "test_one.py", TESTS.format(HANGS[how]))
    options = ("-n", "1", "-p", "no:cacheprovider", "-c", "none.ini")
    edit(tmp_path / "none.ini", SETTINGS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert (
        "No test has ended for 1 s. At work:\n    test_one.py::test_it" in done.stderr
    )
