"""Renaming: programs that are equal but for the name, and refusals where they are not."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import pytest

from kerngen.compiler import Compiler
from kerngen.lsp.checked import Checked
from kerngen.lsp.names import Definition
from kerngen.lsp.rename import RenameError, renamed_text, spans_of
from kerngen.source.text import Source
from kerngen.syntax.library import Library
from tests.budget import tonight
from tests.lsp.opened import checked
from tests.project.tree import ROOT

ACCEPT = ROOT / "tests" / "cases" / "accept"
NEW = "zq7"
PROGRAMS = sorted([*ACCEPT.glob("*.kern"), *ACCEPT.rglob("main.kern")])
PROGRAMS.remove(
    ACCEPT / "guards.kern"
)  # no strategy fits: the checker alone accepts it
FILES = (*PROGRAMS, *sorted((ROOT / "dsl").glob("*.kern")))
FEW = ("name_spaces", "schedules_of_several", "main", "gathers")


def typed(checked: Checked, texts: dict[str, str]) -> str:
    """The typed program, without places, of a file with other texts."""
    old, project = checked.sources.library, checked.project

    def read(name: str) -> Source:
        source = old.source(name)
        return Source(source.path, texts.get(name, source.text), source.name)

    module = Compiler(Library(read, project.build, project.root)).module(checked.name)
    return repr((module.functions, module.kernels, module.structs))


def without_names(text: str, *names: str) -> str:
    """A text in which names are alike, also as `dx`, `x_len` and in lines that are cut."""
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    word = rf"(?<![A-Za-z0-9])(d*)(?:{pattern})(?:_deep|_low_)?(?![A-Za-z0-9])"
    numbered = "Kernel(".join(map(with_numbered_names, text.split("Kernel(")))
    return re.sub(word, r"\1@", numbered).replace(" ", "").replace("\\n", "")


def with_numbered_names(kernel: str) -> str:
    """A kernel whose indices and lengths are numbers: a gradient takes free letters."""
    statements = map(with_numbered_indices, kernel.split("Statement("))
    lists = re.findall(r"\b(?:dims|extents)=\(([^()]*)\)", kernel)
    found = (name for each in lists for name in re.findall("'[^']*'", each))
    names = {name: f"'{number}'" for number, name in enumerate(dict.fromkeys(found))}
    pattern = "|".join(map(re.escape, names)) or "$^"
    text = re.sub(pattern, lambda found: names[found[0]], "Statement(".join(statements))

    def numbered(word: re.Match[str]) -> str:
        return names.get(f"'{word[0]}'", word[0])

    return IMPLIED.sub(lambda found: re.sub(r"\w+", numbered, found[0]), text)


IMPLIED = re.compile(r"text='[^']*', implied=True")
"""The end of a requirement that a derived kernel's lengths meet."""


INDEX = re.compile(r"\bIndex\(name='([^']*)'")
BOUND_OR_READ = re.compile(rf"\bindices=\((?:Index\([^()]*\),? ?)*|{INDEX.pattern}")


def with_numbered_indices(statement: str) -> str:
    """A statement whose indices are numbers, a new one wherever an index is bound."""
    numbers: dict[str, int] = {}
    bound = count()

    def numbered(found: re.Match[str]) -> str:
        if found[0].startswith("indices"):
            numbers.update((name, next(bound)) for name in INDEX.findall(found[0]))
        return INDEX.sub(lambda one: f"Index(name={numbers.get(one[1])}", found[0])

    return BOUND_OR_READ.sub(numbered, statement)


@pytest.mark.parametrize(
    "file",
    [
        *(f for f in PROGRAMS if f.stem in FEW),
        *(
            pytest.param(f, marks=pytest.mark.nightly)
            for f in tonight([f for f in FILES if f.stem not in FEW])
        ),
    ],
    ids=lambda file: file.stem,
)
def test_a_renamed_program_is_equal_but_for_the_name(file: Path) -> None:
    known = checked(file)
    before = typed(known, {})
    meant = set[Definition]()
    renamed, refused = 0, list[str]()
    for name in known.names:
        if not name.written or name.means[0] in meant:
            continue
        meant.update(name.means)
        old = name.span.text
        try:
            found = spans_of(known, name.span.start, NEW)
        except RenameError:
            refused.append(old)
            continue
        renamed += 1
        assert name.span in found[known.source]
        after = typed(
            known, {s.name: renamed_text(s, x, NEW) for s, x in found.items()}
        )
        names = (old, NEW)
        assert without_names(after, *names) == without_names(before, *names), old
    assert renamed
    # Of these a pattern would no longer be, or a gradient has names made of them.
    text = known.source.text
    assert not refused or "*" in text or "gradient" in text


TEXT = """\
const HALF: f32 = 0.5;
fn twice(v: f32) -> f32 { let w = 2.0 * v; w }
kernel k(x: f32[m, n], s: f32) -> y: f32[m] {
    let t[i] = max[j] x[i, j];
    y[i] = s * twice(t[i]) + HALF;
}
kernel k_other(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }
schedule k_* when n > 3 { map }
"""


@pytest.mark.parametrize(
    ("place", "new", "why"),
    [
        ("s * twice", "t", "another meaning"),
        ("t[i] =", "HALF", "another meaning"),
        ("j] x", "s", "fault"),
        ("m, n]", "n", "."),
        ("twice(t", "exp", "fault"),
        ("k_other", "other", "another meaning"),
        ("s * twice", "let", "."),
        ("s * twice", "2s", "can't be a name"),
        ("max[j]", "x", "no name here"),
    ],
)
def test_a_capture_is_refused(place: str, new: str, why: str, tmp_path: Path) -> None:
    known = checked(tmp_path / "a.kern", TEXT)
    with pytest.raises(RenameError, match=why):
        spans_of(known, TEXT.index(place), new)


def test_all_users_of_a_file_are_renamed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kerngen]\nsource = "dsl"\n')
    (tmp_path / "dsl").mkdir()
    used, user = tmp_path / "dsl" / "used.kern", tmp_path / "dsl" / "user.kern"
    used.write_text("fn twice(x: f32) -> f32 { 2.0 * x }\n")
    user.write_text(
        'use "used.kern";\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = twice(x[i]); }\n'
    )
    found = spans_of(checked(used), used.read_text().index("twice"), "double")
    assert {source.name: len(spans) for source, spans in found.items()} == {
        "dsl/used.kern": 1,
        "dsl/user.kern": 1,
    }
    with pytest.raises(RenameError):
        spans_of(checked(used), used.read_text().index("twice"), "exp")
