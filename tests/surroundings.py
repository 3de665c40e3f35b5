"""Tests run alike, whatever started them: a terminal, a hook of git, a service, a CI."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

_NOT_OURS: Final = {
    # how programs print
    *("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    # which repository git means: its hooks set these
    *("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"),
    # what kerngen takes, and how Python runs it
    *("KERNGEN_ADAPTER", "KERNGEN_UNCHECKED"),
    *("PYTHONDEVMODE", "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONUTF8"),
    *("PYTHONWARNINGS",),
}
"""Variables that say to the commands which are tested what the tests say themselves."""


def settle() -> None:
    """Let this process, and those that it starts, be as one that a person starts."""
    for name in _NOT_OURS & os.environ.keys():
        del os.environ[name]
    # Without a user's session there is none, of which drivers complain on every start.
    if not Path(os.environ.get("XDG_RUNTIME_DIR") or "/none").is_dir():
        os.environ["XDG_RUNTIME_DIR"] = folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # A shell's background job ignores Ctrl-C, and some parents never ask how children
    # ended: so would the processes that tests start, and nobody would learn it of them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform != "win32":
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
