"""Run a program in its own process: a driver that crashes or hangs ends it, not the doctor."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any, Final

_MARK: Final = "kerngen-doctor:"
"""The beginning of the reply's line: drivers print other lines to the same stream."""


class ProbeError(Exception):
    """Raised if a process sent no reply; the message is how it ended: 'crashed (SIGSEGV)'."""


def run_probe(module: str, *arguments: str, timeout: float) -> Any:
    """Run the `main` of a module in a new process, and return its reply.

    Raises `ProbeError` if the process ends without a reply, or takes too long.
    """
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; sys.argv[1:] = {[*arguments]!r}\n"
        f"from {module} import main; main()"
    )
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", program],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise ProbeError(f"did not end within {timeout:g} s") from None
    replies = [x for x in done.stdout.splitlines() if x.startswith(_MARK)]
    if done.returncode == 0 and replies:
        return json.loads(replies[-1].removeprefix(_MARK))
    raise ProbeError(_ending(done))


def reply(value: object) -> None:
    """Send a value to the process that called `run_probe`."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(value)}\n")


def _ending(done: subprocess.CompletedProcess[str]) -> str:
    last = done.stderr.strip().rpartition("\n")[2]
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"crashed ({name}){f': {last}' if last else ''}"
    return f"ended with exit code {done.returncode}{f': {last}' if last else ''}"
