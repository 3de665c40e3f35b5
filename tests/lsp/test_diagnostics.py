"""The server's diagnostics: those of `kerngen check --json`, at the client's columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lsprotocol import types

from kerngen.cli import main
from kerngen.lsp.columns import Columns
from kerngen.lsp.files import path_of, uri_of
from tests.check.libraries import cases_in, name_of
from tests.lsp.opened import opened, put

REJECT = Path(__file__).parent.parent / "cases" / "reject"
CASES = cases_in(REJECT)
SEVERITIES = {1: "error", 2: "warning", 4: "hint"}


def as_json(uri: str, shown: types.Diagnostic) -> tuple[object, ...]:
    """What `kerngen check --json` prints of a diagnostic of the protocol."""
    text = path_of(uri).read_bytes().decode()
    where = shown.range
    lines = text.split("\n")

    def place(position: types.Position) -> tuple[int, int]:
        line = lines[position.line].encode("utf-16-le")[: 2 * position.character]
        return position.line + 1, len(line.decode("utf-16-le")) + 1

    severity = SEVERITIES[int(shown.severity or 0)]
    return (severity, shown.code, path_of(uri), place(where.start), place(where.end))


def expected(object_: Any, origin: Path) -> tuple[object, ...]:
    start, end = (
        (object_[f"{end}line"], object_[f"{end}column"]) for end in ("", "end_")
    )
    path = origin / object_["path"]
    return (object_["severity"], object_["code"], path, start, end)


FEW = CASES[::6]
"""The cases of the default suite."""


@pytest.mark.parametrize(
    "case",
    [c if c in FEW else pytest.param(c, marks=pytest.mark.nightly) for c in CASES],
    ids=name_of,
)
def test_diagnostics_are_those_of_check(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = case.parent
    monkeypatch.chdir(origin)
    printed = CliRunner().invoke(main, ["check", case.name, "--json"]).stdout
    wanted = [expected(each, origin) for each in json.loads(printed)]
    found = opened(case).diagnostics()
    listed = [as_json(uri, each) for uri, of_file in found.items() for each in of_file]
    assert wanted
    assert sorted(map(str, listed)) == sorted(map(str, wanted))
    messages = {x.message.split("\n")[0] for of_file in found.values() for x in of_file}
    assert messages == {each["headline"] for each in json.loads(printed)}


SCRIPT_X = "\U0001d4b3"
"""A letter of four bytes, or of two units of UTF-16."""


@pytest.mark.parametrize(
    ("encoding", "column"), [("utf-8", 17), ("utf-16", 14), ("utf-32", 13)]
)
def test_columns_are_those_of_the_client(
    tmp_path: Path, encoding: str, column: int
) -> None:
    workspace = opened(tmp_path / "a.kern", f'use "é{SCRIPT_X}.kern" oops', encoding)
    shown = workspace.diagnostics()[uri_of(tmp_path / "a.kern")]
    ends = {each.range.end.character for each in shown}
    assert column in ends


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_an_offset_survives_the_way_to_the_client_and_back(encoding: str) -> None:
    text = f"aé{SCRIPT_X}\r\n\n{SCRIPT_X}b\rc\x0b\u2028d\n"
    columns = Columns(text, encoding)
    inside = text.index("\r\n") + 1
    for offset in {*range(len(text) + 1)} - {inside}:
        assert columns.offset(columns.position(offset)) == offset


def test_a_code_is_a_link_to_its_page(tmp_path: Path) -> None:
    workspace = opened(
        tmp_path / "a.kern", "kernel k(x: f32[n]) -> y: f32[n] { y[i] = z; }"
    )
    (shown,) = workspace.diagnostics()[uri_of(tmp_path / "a.kern")]
    assert shown.code == "KG0201"
    assert shown.code_description is not None
    assert path_of(shown.code_description.href).read_text().startswith("# KG0201")


USED = "fn half(x: f32) -> f32 { 0.5 * x }\n"
USER = 'use "used.kern";\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = half(x[i]); }\n'


def test_an_open_file_comes_before_the_disk_and_its_users_are_checked_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "used.kern").write_text(USED)
    (tmp_path / "user.kern").write_text(USER)
    workspace = opened(tmp_path / "user.kern")
    user, used = uri_of(tmp_path / "user.kern"), uri_of(tmp_path / "used.kern")
    assert workspace.update() == {user: []}
    put(workspace, tmp_path / "used.kern", USED.replace("half", "third"))
    shown = workspace.update()
    assert [each.code for each in shown[user]] == ["KG0202"]
    put(workspace, tmp_path / "used.kern", "fn half(x: f32) -> f32 { 0.5 * }\n")
    shown = workspace.update()
    assert [each.code for each in shown[used]] == ["KG0101"]
    assert shown[user] == []
    put(workspace, tmp_path / "used.kern", USED)
    assert workspace.update() == {used: []}
    workspace.close(used)
    assert workspace.update() == {}


def test_a_fault_of_a_used_file_that_is_not_open_is_shown_there(tmp_path: Path) -> None:
    (tmp_path / "used.kern").write_text("fn half(x: f32) -> f32 { z }\n")
    workspace = opened(tmp_path / "user.kern", USER)
    user, used = uri_of(tmp_path / "user.kern"), uri_of(tmp_path / "used.kern")
    assert [each.code for each in workspace.update()[used]] == ["KG0201"]
    (tmp_path / "used.kern").write_text(USED)
    assert workspace.update() == {used: []}
    workspace.close(user)
    assert workspace.update() == {user: []} or workspace.update() == {}


def test_what_is_never_read_is_shown_in_grey(tmp_path: Path) -> None:
    text = """kernel k(x: f32[n], spare: f32) -> y: f32[n] { y[i] = x[i]; }
struct Loose { a: f32, at: vec3f, b: f32, by: vec3f }
kernel of(b: Loose[n]) -> y: f32[n] { y[i] = b[i].a + b[i].at.x * b[i].by.y; }
"""
    workspace = opened(tmp_path / "a.kern", text)
    shown = workspace.diagnostics()[uri_of(tmp_path / "a.kern")]
    assert [(each.range.start.line, each.tags) for each in shown] == [
        (0, [types.DiagnosticTag.Unnecessary]),
        (1, None),
    ]


def test_wrong_settings_are_a_diagnostic(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.kerngen]\nsauce = 1\n")
    workspace = opened(tmp_path / "a.kern", "")
    (shown,) = workspace.diagnostics()[uri_of(tmp_path / "a.kern")]
    assert "no setting 'sauce'" in shown.message


def test_a_related_place_has_its_file(tmp_path: Path) -> None:
    (tmp_path / "used.kern").write_text(USED)
    text = f"{USER}fn half(x: f32) -> f32 {{ x }}\n"
    workspace = opened(tmp_path / "user.kern", text)
    shown = workspace.diagnostics()[uri_of(tmp_path / "user.kern")]
    related = [r for each in shown for r in each.related_information or ()]
    assert uri_of(tmp_path / "used.kern") in {each.location.uri for each in related}


def test_a_text_that_is_not_saved_yet_has_no_fault(tmp_path: Path) -> None:
    workspace = opened(tmp_path / "a.kern", "const A: f32 = 1.0;\n")
    for uri in ("untitled:Untitled-1", "vscode-vfs://github/a/b-c.kern"):
        workspace.put(uri, "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }\n")
        assert workspace.update()[uri] == []
