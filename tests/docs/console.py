"""Commands that pages show, run or judged.

`kerngen` and `python FILE` run in this process, as that is quicker; a command that is not
to be run has to exist all the same, with its options.
"""

from __future__ import annotations

import importlib.util
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from unittest.mock import patch

import click
from click.testing import CliRunner

from kerngen.cli import main
from tests.docs.session import Session, forget
from tests.project.tree import ROOT

Words = Sequence[str]

_PROGRESS: Final = re.compile(
    r"^(Compiling the kernels|Verifying \d+ of) .*\n", re.MULTILINE
)
"""The lines in a pipe where a terminal, which pages show, has a bar for a while."""

_COMMAND: Final = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console, and the output that stands below it."""
    first, *rest = _COMMAND.split(text)
    assert first == "", f"Output without a command: {first}"
    for command, output in zip(rest[::2], rest[1::2], strict=True):
        yield command.replace("\\\n", " "), output


def words_of(command: str) -> list[str]:
    """The words of a command, without a comment at its end."""
    return shlex.split(command, comments=True)


def run(session: Session, command: str) -> int:
    """Run a command, keep its output, and return its exit status."""
    name, *words = words_of(command)
    if name in RUN:
        return RUN[name](session, words)
    judge(command)
    session.output = None
    return 0


def _kerngen(session: Session, words: Words) -> int:
    result = CliRunner().invoke(main, words, prog_name="kerngen")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    session.output = _PROGRESS.sub("", result.output)
    return result.exit_code


def _python(session: Session, words: Words) -> int:
    if words[0] == "-c":
        session.print_of(lambda: exec(words[1], {"__name__": "__main__"}))
        return 0
    forget(session.folder)
    with patch.object(sys, "argv", list(words)):
        session.print_of(lambda: runpy.run_path(words[0], run_name="__main__"))
    return 0


def _pytest(session: Session, words: Words) -> int:
    return _process(session, [sys.executable, "-m", "pytest", *words])


def _process(session: Session, words: Words) -> int:
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    session.output = done.stdout
    return done.returncode


def _cat(session: Session, words: Words) -> int:
    session.output = "".join(Path(name).read_text("utf-8") for name in words)
    return 0


def _ls(session: Session, words: Words) -> int:
    return _process(session, ["ls", *words])


def _pip(session: Session, words: Words) -> int:
    """Do what an editable install is for: let the reader's own package be found."""
    if words[:2] == ["install", "-e"]:
        project = tomllib.loads((session.folder / "pyproject.toml").read_text("utf-8"))
        folders = project["tool"]["hatch"]["build"]["dev-mode-dirs"]
        sys.path[:0] = [str(session.folder / folder) for folder in folders]
    session.output = None
    return 0


RUN: Final[Mapping[str, Callable[[Session, Words], int]]] = {
    "kerngen": _kerngen,
    "python": _python,
    "pytest": _pytest,
    "cat": _cat,
    "ls": _ls,
    "pip": _pip,
}
"""The commands that are run; `tests.docs.judges` runs `cd` itself."""

ELSEWHERE: Final = frozenset(
    {"git", "mpiexec", "mypy", "pyright", "python3", "source", "torchrun"}
)
"""Commands that set up a reader's machine: a test has no business with them."""


def judge(command: str) -> None:
    """Hold a command that is not run to what exists."""
    name, *words = words_of(command.partition("&&")[0])
    if "=" in name:  # a variable of the environment in front
        judge(command.partition(" ")[2])
    elif name == "kerngen":
        _judge_kerngen(words)
    elif name == "python":
        _judge_python(words)
    elif name.startswith("tools/"):
        assert (ROOT / name).is_file(), command
    else:
        assert name in ELSEWHERE or name in RUN, f"Nobody knows '{name}': {command}"


def _judge_kerngen(words: Words) -> None:
    name, *arguments = words
    command = main.commands[name]
    options = {
        spelling
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in arguments:
        given = word.partition("=")[0]
        if given.startswith("-") and given not in {"-", "-h", "--help"}:
            assert given in options, f"'kerngen {name}' has no option '{given}'"


def _judge_python(words: Words) -> None:
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]) is not None, words
    elif words[0].startswith("tools/"):
        assert (ROOT / words[0]).is_file(), words
