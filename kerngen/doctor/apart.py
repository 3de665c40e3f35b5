"""Running a part of the examination in a process of its own.

A driver that crashes or hangs ends that process, and not the doctor.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any, Final

_MARK: Final = "kerngen-doctor:"
"""What begins the line of the answer: drivers print to the same stream."""


class ApartError(Exception):
    """The process gave no answer; says how it ended."""


def ask(module: str, *arguments: str, timeout: float) -> Any:
    """Run the `main` of a module with arguments; return what it answered.

    Raises `ApartError` if the process ends otherwise, or takes too long.
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
        raise ApartError(f"did not end within {timeout:g} s") from None
    answers = [x for x in done.stdout.splitlines() if x.startswith(_MARK)]
    if done.returncode == 0 and answers:
        return json.loads(answers[-1].removeprefix(_MARK))
    raise ApartError(_ending(done))


def answer(value: object) -> None:
    """Send what `ask` returns."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(value)}\n")


def _ending(done: subprocess.CompletedProcess[str]) -> str:
    last = done.stderr.strip().rpartition("\n")[2]
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"crashed ({name}){f': {last}' if last else ''}"
    return f"ended with exit code {done.returncode}{f': {last}' if last else ''}"
