"""Project settings: `[tool.kerngen]` in a pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, cast, final

import click

from kerngen.cli.arguments.paths import absolute, shown_path, working_directory
from kerngen.cli.arguments.targets import DEFAULT, Targets, read_targets
from kerngen.emit.targets import Target
from kerngen.source.similar import suggesting

_NAME: Final = "pyproject.toml"
_SETTINGS: Final = ("source", "out", "target")


@final
@dataclass(frozen=True, slots=True)
class Project:
    """The settings of a project, with absolute paths, and the `file` they are from."""

    source: Path | None = None
    out: Path | None = None
    targets: Targets = DEFAULT
    file: Path = Path(_NAME)


def find_project(folder: Path | None = None) -> Project:
    """Return the settings of the project around a folder.

    As with ruff, a pyproject.toml without [tool.kerngen] is passed over, and one that
    can't be read is an error.
    """
    here = folder or working_directory()
    for each in (here, *here.parents):
        if (each / _NAME).is_file() and (found := _read(each / _NAME)) is not None:
            return found
    return Project()


def _read(file: Path) -> Project | None:
    """Return the settings in a pyproject.toml, or None if it has no [tool.kerngen]."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        _refuse(file, 0, "The file is not in UTF-8.")
    try:
        tools: object = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        _refuse_syntax(file, text, str(error))
    except RecursionError:
        _refuse(file, 0, "Its values are nested too deep.")
    if not isinstance(tools, dict):
        _refuse(file, _line(text, "tool"), f"'tool' is a table, not {tools!r}.")
    table = cast("dict[str, object]", tools).get("kerngen")
    if table is None:
        return None
    if not isinstance(table, dict):
        _refuse(
            file, _line(text, "kerngen"), f"'tool.kerngen' is a table, not {table!r}."
        )
    settings = dict(cast("dict[str, object]", table))
    targets = _targets(file, text, settings.pop("target", Target.PYTHON.value))
    paths = {key: _path(file, text, key, value) for key, value in settings.items()}
    return Project(**paths, targets=targets, file=file)


def _targets(file: Path, text: str, value: object) -> Targets:
    line = _line(text, "target")
    if not isinstance(value, str):
        shown = 'such as "python,typescript"'
        _refuse(file, line, f"'target' lists languages, {shown}, not {value!r}.")
    try:
        return read_targets(value)
    except ValueError as error:
        _refuse(file, line, str(error))


def _path(file: Path, text: str, key: str, value: object) -> Path:
    line = _line(text, key)
    if key not in _SETTINGS:
        sentence = f"[tool.kerngen] has no setting '{key}'; it has 'source', 'out' and 'target'."
        _refuse(file, line, suggesting(sentence, key, _SETTINGS))
    if not isinstance(value, str):
        _refuse(file, line, f"'{key}' is a path, such as \"{key}\", not {value!r}.")
    if not value:
        _refuse(file, line, f"'{key}' can't be empty; '.' is this file's folder.")
    return absolute(file.parent / value)


def _refuse_syntax(file: Path, text: str, said: str) -> NoReturn:
    """Raise for invalid TOML; the line is at the end of Python's message."""
    place = re.fullmatch(r"(.*) \(at (line (\d+).*|end of document)\)", said, re.DOTALL)
    line = int(place[3] or text.count("\n") + 1) if place else 0
    _refuse(file, line, f"{place[1] if place else said}.")


def _refuse(file: Path, line: int, why: str) -> NoReturn:
    place = f":{line}" if line else ""
    raise click.ClickException(f"{shown_path(file)}{place}: {why}")


def _line(text: str, key: str) -> int:
    """Return the line that a setting is on, as far as that can be found; else 0."""
    begin = text.find("[tool.kerngen]")
    found = re.compile(rf"^[\[ \t]*(?:[\w.]+\.)?['\"]?{re.escape(key)}\b", re.MULTILINE)
    match = found.search(text, max(begin, 0))
    return text.count("\n", 0, match.start()) + 1 if match else 0
