"""Fixes: each removes its fault and adds none, and a program with one fault then checks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from kerngen.cli import main
from kerngen.explain.pages import codes, page
from kerngen.lsp.actions import FIX_ALL, actions
from kerngen.output import atomic_replace
from kerngen.report.findings import check_text
from kerngen.report.fixes import applied, fix_of, fixed
from kerngen.source.diagnostic import Diagnostic
from tests.check.libraries import cases_in
from tests.explain.examples import blocks, sections
from tests.lsp.opened import checked
from tests.project.tree import ROOT

LEAST = 0.6
"""The part of the hints that are to be fixes."""

REJECT = ROOT / "tests" / "cases" / "reject"


def faults(found: tuple[object, ...]) -> Counter[tuple[str, str]]:
    of_class = (each for each in found if isinstance(each, Diagnostic))
    return Counter((each.code, each.message) for each in of_class)


def fixes_in(case: Path) -> tuple[int, int]:
    """How many hints a wrong program gets, and how many of these are fixes that hold."""
    known = checked(case)
    hinted = [f for f in known.found if isinstance(f, Diagnostic) and f.help]
    number = 0
    for fault in hinted:
        fix = fix_of(known.sources, fault)
        if fix is None or {e.span.source for e in fix.edits} != {known.source}:
            continue
        number += 1
        after = checked(case, applied(known.source.text, fix.edits))
        left = faults(known.found) - Counter([(fault.code, fault.message)])
        found = faults(after.found)
        key = (fault.code, fault.message)
        # Behind an error of syntax there may be what nobody could see.
        assert found <= left or (
            fault.edits and found[key] <= left[key]
        ), f"{case.name}: {fault.message} {fix.title}"
    return len(hinted), number


def test_hints_of_some_wrong_programs_are_fixes() -> None:
    counts = [fixes_in(case) for case in cases_in(REJECT)[::6]]
    hinted, fixed = (sum(each) for each in zip(*counts, strict=True))
    assert fixed >= LEAST * hinted


@pytest.mark.nightly
def test_hints_of_wrong_programs_are_fixes() -> None:
    counts = [fixes_in(case) for case in cases_in(REJECT)]
    hinted, fixed = (sum(each) for each in zip(*counts, strict=True))
    print(f"{fixed} of {hinted} hints are fixes")
    assert fixed >= LEAST * hinted


def page_is_fixed(code: str) -> bool | None:
    """Whether the one fault of a page's wrong program is fixed; None if it has no hint."""
    found = blocks(sections(page(code)).wrong)
    if len(found) != 1 or found[0].language != "rust":
        return None
    known = checked(Path("/nowhere/example.kern"), found[0].text)
    hinted = [f for f in known.found if isinstance(f, Diagnostic) and f.help]
    if not hinted:
        return None
    fix = fix_of(known.sources, hinted[0])
    if fix is None:
        return False
    text = applied(found[0].text, fix.edits)
    for each in check_text(text, "example.kern"):
        assert each["severity"] == "hint" or len(hinted) > 1, f"{code}: {fix.title}"
    return True


def test_a_program_with_one_fault_checks_when_that_is_fixed() -> None:
    some = [page_is_fixed(code) for code in codes()[::3]]
    assert some.count(True) >= LEAST * (len(some) - some.count(None))


@pytest.mark.nightly
def test_every_page_with_one_fault_checks_when_that_is_fixed() -> None:
    all_ = [page_is_fixed(code) for code in codes()]
    print(f"{all_.count(True)} of {all_.count(True) + all_.count(False)} pages")
    assert all_.count(True) >= LEAST * (len(all_) - all_.count(None))


WRONG = """\
kernel scale(x: f32[n], alpha: f32) -> y: f32[n] {
    y[i] == alhpa * x[i]
}
"""
RIGHT = """\
kernel scale(x: f32[n], alpha: f32) -> y: f32[n] {
    y[i] = alpha * x[i];
}
"""


def test_a_fix_is_a_code_action(tmp_path: Path) -> None:
    text = WRONG.replace("==", "=").replace("x[i]\n", "x[i];\n")
    known = checked(tmp_path / "a.kern", text)
    at = text.index("alhpa")
    (action,) = actions(known, at, at)
    assert action.title == "Write 'alpha'"
    assert action.edit is not None
    assert action.edit.changes is not None
    ((edit,),) = action.edit.changes.values()
    assert (edit.new_text, edit.range.start.character) == ("alpha", 11)
    assert actions(known, 0, 1) == []


def test_all_fixes_are_one_action(tmp_path: Path) -> None:
    known = checked(tmp_path / "a.kern", WRONG)
    for only in (["source"], ["source.fixAll"], [FIX_ALL, "refactor"]):
        (action,) = actions(known, 0, 0, only)
        assert (action.title, action.kind) == ("Fix 3 errors", FIX_ALL)
        assert action.edit is not None
        assert action.edit.changes is not None
        ((edit,),) = action.edit.changes.values()
        assert (edit.range.start.line, edit.range.end.line) == (1, 2)
        assert edit.new_text == RIGHT.splitlines(keepends=True)[1]
    at = WRONG.index("==")
    assert actions(known, at, at, ["quickfix"])
    assert not actions(known, at, at, ["refactor", "source.fix"])
    right = checked(tmp_path / "b.kern", RIGHT)
    assert actions(right, 0, 0, [FIX_ALL]) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("x[i] ** alpha;", "pow(x[i], alpha);"),
        ("x[i] ^ 2.0;", "pow(x[i], 2.0);"),
        (
            "alpha > 0.0 ? x[i] : alpha;",
            "if alpha > 0.0 { x[i] } else { alpha };",
        ),
        (
            "x[i] if alpha > 0.0 else alpha;",
            "if alpha > 0.0 { x[i] } else { alpha };",
        ),
        ("exp(x[i]", "exp(x[i]);"),
    ],
)
def test_a_fix_writes_what_other_languages_have(
    wrong: str, right: str, tmp_path: Path
) -> None:
    text = RIGHT.replace("alpha * x[i];", wrong)
    known = checked(tmp_path / "a.kern", text)
    fixed_text = RIGHT.replace("alpha * x[i];", right)
    assert fixed(known.sources, known.name) == (fixed_text, 1)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("-> (y: f32[n])", "-> y: f32[n]"),
        ("return alpha * x[i];", "y[i] = alpha * x[i];"),
    ],
)
def test_a_fix_writes_outputs(wrong: str, right: str, tmp_path: Path) -> None:
    assert right in RIGHT
    known = checked(tmp_path / "a.kern", RIGHT.replace(right, wrong))
    assert fixed(known.sources, known.name) == (RIGHT, 1)


def test_check_fixes_files(tmp_path: Path) -> None:
    file = tmp_path / "a.kern"
    file.write_text(WRONG)
    result = CliRunner().invoke(main, ["check", "--fix", str(file)])
    assert result.exit_code == 0, result.output
    assert "3 errors fixed" in result.output
    assert file.read_text() == RIGHT
    again = CliRunner().invoke(main, ["check", "--fix", str(file)])
    assert "fixed" not in again.output
    refused = CliRunner().invoke(main, ["check", "--fix", "-"], RIGHT)
    assert "can't be given with '-'" in refused.output


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("x: f32[n], alpha f32", "x: f32[n], alpha: f32"),
        ("alpha * x[i];\n\n", "alpha * x[i];\n}\n\n"),
    ],
)
def test_a_fix_adds_what_is_missing(wrong: str, right: str, tmp_path: Path) -> None:
    text = f"{RIGHT}\n{RIGHT.replace('scale', 'again')}"
    assert right in text
    known = checked(tmp_path / "a.kern", text.replace(right, wrong, 1))
    first = next(each for each in known.found if isinstance(each, Diagnostic))
    fix = fix_of(known.sources, first)
    assert fix is not None
    assert applied(known.source.text, fix.edits) == text


def test_a_fix_leaves_what_is_written(tmp_path: Path) -> None:
    # Another fault may hide what a guess breaks: no guess takes code away.
    text = """kernel k(x: f32[m, n]) -> y: f32[m] {
    let s[i] = sum[n] x[i, n];
    y[i] = unknown(s[i]);
}
"""
    known = checked(tmp_path / "a.kern", text)
    first = next(each for each in known.found if isinstance(each, Diagnostic))
    fix = fix_of(known.sources, first)
    assert fix is not None
    assert "let s[i] = sum[j] x[i, j];" in applied(text, fix.edits)


def test_a_fix_holds_for_the_users_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kerngen]\nsource = "."\n')
    used, user = tmp_path / "used.kern", tmp_path / "user.kern"
    used.write_text("struct Pair { a: f3, b: u32 }\n")
    text = """use "used.kern";
kernel first(p: Pair, x: f32[n]) -> y: f32[n] { y[i] = p.a * x[i]; }
"""
    user.write_text(text)

    def titles() -> list[str]:
        known = checked(used)
        return [each.title for each in actions(known, 0, len(known.source.text))]

    assert titles() == ["Write 'f32'"]
    user.write_text(text.replace("p.a * x[i]", "x[i + p.a]"))
    assert titles() == []


def test_check_fixes_all_that_it_can_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fault in what is used hides those of its users, and one file can't be read.
    used, user, other = (tmp_path / f"{name}.kern" for name in ("used", "a", "other"))
    used.write_text("fn half(x: f32) -> f32 { return 0.5 * (x); }\n")
    user.write_text(f'use "used.kern";\n{WRONG}')
    other.write_bytes(b"// caf\xe9\n")
    result = CliRunner().invoke(main, ["check", "--fix", "--json", str(tmp_path)])
    (fault,) = json.loads(result.stdout)
    assert (fault["code"], result.exit_code) == ("KG0001", 1)
    assert user.read_text() == f'use "used.kern";\n{RIGHT}'
    assert used.read_text() == "fn half(x: f32) -> f32 { 0.5 * (x) }\n"
    assert "3 errors fixed in" in result.stderr

    user.write_text(WRONG)

    def refuse(file: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(atomic_replace, "replace_atomically", refuse)
    result = CliRunner().invoke(main, ["check", "--fix", str(user)])
    assert "a.kern can't be changed: Permission denied" in result.stderr
    assert "error[KG0" in result.stdout
