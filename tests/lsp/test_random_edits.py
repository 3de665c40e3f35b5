"""Any edits: the server answers, and knows what a server knows that begins with the result."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from lsprotocol import types

from kerngen.cli.lsp import find_selection
from kerngen.lsp import calls, completion, editing, inlays, lenses, places, tokens
from kerngen.lsp.actions import actions
from kerngen.lsp.checked import Checked
from kerngen.lsp.files import uri_of
from kerngen.lsp.hover import hover
from kerngen.lsp.rename import RenameError, rename
from kerngen.lsp.workspace import Workspace
from tests.budget import tonight
from tests.check.libraries import cases_in
from tests.project.tree import ROOT

CASES = ROOT / "tests" / "cases"
PIECES = [
    *" \n\r\t;,.:()[]{}<>=+-*/%&|^~@\"'#\\\0\x0b",
    *(
        "kernel",
        "fn",
        "let",
        "sum[",
        "if ",
        " else ",
        "when",
        "schedule ",
        'use "b.kern";',
    ),
    *(
        "x",
        "[i]",
        "f32",
        "0.5",
        "1e39",
        "->",
        "//",
        "///",
        "\r\n",
        "\u00e9",
        "\U0001d4b3",
    ),
    *("\ud800", "gradient of ", "mut ", "adapter."),
]
FILES = ("a.kern", "b.kern")


def edited(text: str, dice: random.Random, texts: list[str]) -> str:
    """A text with one edit, such as people and tools make."""
    start = dice.randint(0, len(text))
    end = min(len(text), start + dice.choice([0, 0, 0, 1, 1, 3, 20, 200]))
    piece = dice.choice(["", dice.choice(PIECES), dice.choice(PIECES), text[start:end]])
    if dice.random() < 0.02:
        return str(dice.choice(texts))
    return f"{text[:start]}{piece}{text[end:]}"[:6000]


def asks(checked: Checked, dice: random.Random) -> None:
    """Ask all that a client may ask of a place; nothing is raised."""
    offset = dice.randint(0, len(checked.source.text))
    checked.columns.offset(types.Position(dice.randint(0, 99), dice.randint(0, 99)))
    part = checked.around(offset)
    hover(part, offset)
    places.definition(part, offset)
    places.references(checked, offset, with_definition=True)
    places.highlights(checked, offset)
    places.symbols(checked)
    completion.completions(part, offset)
    calls.signature_help(part, offset)
    inlays.inlays(checked.around(offset // 2, offset), offset // 2, offset)
    tokens.tokens(checked)
    lenses.lenses(checked)
    if dice.random() < 0.05:
        actions(checked, offset, offset + 9)
        editing.formatting(checked)
        with contextlib.suppress(RenameError):
            rename(checked, offset, dice.choice(["x", "zq", "let", "2"]))


def state(workspace: Workspace) -> object:
    """What a server knows and an editor may show."""
    found = list[object]()
    for each in workspace.all_checked():
        end = len(each.source.text)
        shown = places.symbols(each), tokens.tokens(each), inlays.inlays(each, 0, end)
        words = [hover(each, name.span.start) for name in each.names[:20]]
        found.append((each.path, shown, words, lenses.lenses(each)))
    return workspace.diagnostics(), found


def run(folder: Path, seed: int, number: int) -> None:
    """Make so many edits to two files, one of which may use the other.

    Two of five are undone: most edits leave a text wrong, and of a right one there is more
    to know.
    """
    dice = random.Random(seed)
    texts = [
        case.read_bytes().decode()
        for case in (*cases_in(CASES / "accept"), *cases_in(CASES / "reject"))
        if case.stat().st_size < 3000
    ]
    current = {name: dice.choice(texts) for name in FILES}
    for name, text in current.items():
        (folder / name).write_bytes(text.encode())
    before = dict[str, str]()
    known = Workspace(find_selection)
    for step in range(number):
        name = dice.choice(FILES)
        uri = uri_of(folder / name)
        if dice.random() < 0.02:
            known.close(uri)
            current[name] = (folder / name).read_bytes().decode()
        else:
            new = before.pop(name, None) if dice.random() < 0.4 else None
            if new is None:
                before[name] = current[name]
                new = edited(current[name], dice, texts)
            current[name] = new
            known.put(uri, new)
        known.update()
        checked = known.checked(uri)
        if checked is not None and step % 5 == 0:
            asks(checked, dice)
        if step % 10 == 0:
            fresh = Workspace(find_selection)
            for path, buffer in known.files.buffers.items():
                fresh.put(uri_of(path), buffer.text)
            assert state(fresh) == state(known), f"{seed}, edit {step}"


def test_random_edits(tmp_path: Path) -> None:
    run(tmp_path, 1, 100)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", tonight(range(10, 20)))
def test_many_random_edits(seed: int, tmp_path: Path) -> None:
    run(tmp_path, seed, 10_000)
