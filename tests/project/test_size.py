"""The size budget: what is too long to read at one sitting fails."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.project.tree import ROOT, python_files, statements

FOLDERS = ("kerngen", "tests", "examples")
LISTED_LINES, MOST_LINES = 400, 600
MOST_FUNCTION_LINES = 60
MOST_MODULES = 25
"""So many in a folder can be read as a list."""


def line_count(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())


def written_files() -> list[Path]:
    """Every file that somebody wrote, not generated."""
    others = [*ROOT.glob("kerngen/**/*.lark"), *ROOT.glob("dsl/**/*.kern")]
    tools = [file for file in ROOT.glob("tools/*") if file.is_file()]
    return [*python_files(*FOLDERS), *others, *tools]


def test_no_file_is_too_long() -> None:
    lengths = {file.relative_to(ROOT): line_count(file) for file in written_files()}
    for file, length in lengths.items():
        if length > LISTED_LINES:
            print(f"{file}: {length} lines, over {LISTED_LINES}")
    assert {file: n for file, n in lengths.items() if n > MOST_LINES} == {}


def test_no_folder_is_too_full() -> None:
    modules = Counter(file.parent.relative_to(ROOT) for file in python_files("kerngen"))
    assert {folder: n for folder, n in modules.items() if n > MOST_MODULES} == {}


def may_have_a_long_function(file: Path) -> bool:
    """Whether a definition is far from the next one that is as far to the left.

    To parse all files takes seconds, and few of them have such definitions.
    """
    text = file.read_text("utf-8")
    starts = [
        (len(line) - len(line.lstrip()), number)
        for number, line in enumerate(text.splitlines())
        if line.lstrip().startswith(("def ", "async def ", "class "))
    ]
    starts.append((0, text.count("\n")))
    return any(
        next(n for other, n in starts[index + 1 :] if other <= indent) - number
        > MOST_FUNCTION_LINES
        for index, (indent, number) in enumerate(starts[:-1])
    )


def test_no_function_is_too_long() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in filter(may_have_a_long_function, python_files(*FOLDERS))
        for node in statements(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert long == []
