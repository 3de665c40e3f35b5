"""`kerngen fmt`: files, folders, stdin, and what it leaves alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kerngen.cli import main
from kerngen.format import form, printer
from kerngen.format.form import FormatterError
from tests.project.tree import ROOT

from .sample import SCALE, TOTAL, Run, edit, files, times

FORMATTED = """\
kernel scale(x: f32[n], k: f32) -> y: f32[n] {
    y[i] = k * x[i];
}
"""
BROKEN = "kernel scale(x f32[n]) {}\n"


def test_formats_the_sources_of_the_project(project: Path, kerngen: Run) -> None:
    done = kerngen("fmt")
    assert done.stdout == (
        "reformatted dsl/deep/total.kern\n"
        "reformatted dsl/scale.kern\n"
        "2 files reformatted.\n"
    )
    assert (project / "dsl" / "scale.kern").read_text() == FORMATTED
    before = times(project / "dsl")
    assert kerngen("fmt").stdout == "2 files left unchanged.\n"
    assert times(project / "dsl") == before
    assert kerngen("fmt", "--check").stdout == "2 files already formatted.\n"


def test_check_and_diff_write_nothing(project: Path, kerngen: Run) -> None:
    edit(project / "dsl" / "scale.kern", FORMATTED)
    before = files(project)
    checked = kerngen("fmt", "--check", code=1)
    assert checked.stdout == (
        "would reformat dsl/deep/total.kern\n"
        "1 file would be reformatted, 1 file already formatted.\n"
    )
    shown = kerngen("fmt", "--diff", "dsl", code=1)
    assert shown.stdout.startswith("--- dsl/deep/total.kern\n+++ dsl/deep/total.kern ")
    assert f"-{TOTAL.splitlines()[1]}\n" in shown.stdout
    assert "+    s = sum[i] x[i];\n" in shown.stdout
    assert shown.stderr.startswith("1 file would be reformatted")
    assert files(project) == before


def test_a_faulty_file_holds_up_no_other(project: Path, kerngen: Run) -> None:
    edit(project / "dsl" / "broken.kern", BROKEN)
    done = kerngen("fmt", code=1)
    assert "2 files reformatted, 1 file could not be formatted." in done.stdout
    assert "dsl/broken.kern:1:14" in done.stderr
    assert (project / "dsl" / "broken.kern").read_text() == BROKEN


def test_a_wrong_program_is_formatted_too(project: Path, kerngen: Run) -> None:
    edit(project / "dsl" / "scale.kern", SCALE.replace("x[i]", "z[i]"))
    kerngen("fmt", "dsl/scale.kern")
    assert (project / "dsl" / "scale.kern").read_text() == FORMATTED.replace(
        "x[i]", "z[i]"
    )


def test_stdin_to_stdout() -> None:
    def run(text: bytes, *options: str) -> tuple[bytes, str, int]:
        done = CliRunner().invoke(main, ["fmt", "-", *options], input=text)
        return done.stdout_bytes, done.stderr, done.exit_code

    assert run(SCALE.encode()) == (FORMATTED.encode(), "", 0)
    crlf = FORMATTED.replace("\n", "\r\n").encode()
    assert run(SCALE.replace("\n", "\r\n").encode()) == (crlf, "", 0)
    out, errors, code = run(BROKEN.encode(), "--stdin-filename", "here.kern")
    assert (out, code) == (b"", 1)
    assert "here.kern:1:14" in errors
    out, _, code = run(SCALE.encode(), "--check", "--stdin-filename", "here.kern")
    assert (out.splitlines()[0], code) == (b"would reformat here.kern", 1)
    assert run(b"\xff")[2] == 1


@pytest.mark.skipif(os.name == "nt", reason="no modes and links of this kind")
def test_keeps_modes_links_and_line_ends(tmp_path: Path, kerngen: Run) -> None:
    target = tmp_path / "target.kern"
    target.write_bytes(b"\xef\xbb\xbf" + SCALE.replace("\n", "\r\n").encode())
    target.chmod(0o640)
    link = tmp_path / "link.kern"
    link.symlink_to(target.name)
    done = kerngen("fmt", link, target, tmp_path)
    assert "1 file reformatted." in done.stdout, "a file is formatted once"
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.read_bytes() == FORMATTED.replace("\n", "\r\n").encode()
    assert sorted(file.name for file in tmp_path.iterdir()) == [link.name, target.name]


def test_a_failed_write_leaves_the_file(
    project: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = files(project)
    monkeypatch.setattr(Path, "replace", full)
    done = kerngen("fmt", code=1)
    assert done.stdout == "2 files could not be formatted.\n"
    assert "error: 'dsl/scale.kern': No space left on device." in done.stderr
    assert files(project) == before


def test_a_file_that_may_not_be_written_stays(
    project: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replacing it would need rights to its folder alone; root has all of them."""

    opened = Path.open

    def open_to_read(path: Path, mode: str = "r", **options: Any) -> Any:
        if "+" in mode or "w" in mode:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, mode, **options)

    before = files(project)
    monkeypatch.setattr(Path, "open", open_to_read)
    done = kerngen("fmt", "dsl", code=1)
    assert "error: 'dsl/scale.kern': Permission denied." in done.stderr
    assert files(project) == before


def test_a_folder_without_sources_is_told(tmp_path: Path, kerngen: Run) -> None:
    done = kerngen("fmt", "--check", tmp_path)
    assert (done.stdout, done.stderr) == (
        "",
        f"warning: There are no .kern files in '{tmp_path}'.\n",
    )


def test_wrong_usage(
    tmp_path: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    edit(tmp_path / "a.txt", "")
    assert "Give PATHS" in kerngen("fmt", code=2).stderr
    assert "'-' can't" in kerngen("fmt", "-", "a.kern", code=2).stderr
    assert "does not exist" in kerngen("fmt", "a.kern", code=1).stderr
    assert "not a .kern file" in kerngen("fmt", "a.txt", code=1).stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [("*", "+"), ("// kept", "// other"), ("// kept\n", ""), ("}", ""), ("", "\n")],
)
def test_what_would_change_a_program_is_never_written(
    before: str, after: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Break the printer, and see that it is noticed."""
    calls: list[int] = []

    def wrong(*arguments: Any) -> str:
        calls.append(1)
        text = printer.print_document(*arguments)
        return text.replace(before, after, 1) if before else text + after * len(calls)

    monkeypatch.setattr(form, "print_document", wrong)
    faulty = SCALE.replace("k * x[i]", "k * if k > 0.0 { x[i] } else { 0.0 }// kept\n")
    edit(project / "dsl" / "scale.kern", faulty)
    with pytest.raises(FormatterError):
        CliRunner().invoke(main, ["fmt", "dsl/scale.kern"], catch_exceptions=False)
    assert (project / "dsl" / "scale.kern").read_text() == faulty


def test_the_hooks_are_commands() -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    for command in re.findall(r"entry: kerngen (\w+)", hooks):
        assert command in main.commands
    assert re.findall(r"- id: (.*)", hooks) == ["kerngen-fmt", "kerngen-check"]
