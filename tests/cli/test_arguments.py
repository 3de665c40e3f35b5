"""What commands make of their arguments, and of the project around them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis.configuration import storage_directory

from kerngen import __version__
from kerngen.verify.notes import notes_elsewhere
from tests.cli.sample import OUT, SCALE, SOURCE, TOTAL, Run, edit, files

pytestmark = pytest.mark.usefixtures("project")


def test_version(kerngen: Run) -> None:
    assert kerngen("--version").output == f"kerngen, version {__version__}\n"


@pytest.mark.parametrize(
    "words", [("bild",), ("build", "--ouT", "x"), ("build", "a", "b"), ("show",)]
)
def test_wrong_usage_exits_2(kerngen: Run, words: tuple[str, ...]) -> None:
    assert "Usage:" in kerngen(*words, code=2).output


@pytest.mark.parametrize("command", [("build",), ("check",), ("show", "scale")])
def test_without_src_or_project_is_wrong_usage(
    kerngen: Run, command: tuple[str, ...]
) -> None:
    Path("pyproject.toml").unlink()
    assert "Give SRC" in kerngen(*command, code=2).output


def test_without_out_or_project_is_wrong_usage(kerngen: Run) -> None:
    Path("pyproject.toml").unlink()
    assert "Give --out" in kerngen("build", "dsl", code=2).output


def test_settings_are_found_from_a_folder_below(
    kerngen: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("dsl/deep")
    kerngen("build")
    assert "scale.py" in files(project / OUT)


def test_other_sources_dont_go_to_the_projects_output(
    kerngen: Run, tmp_path: Path
) -> None:
    kerngen("build")
    before = files(OUT)
    edit(tmp_path / "other" / "total.kern", TOTAL)
    assert "Give --out" in kerngen("build", tmp_path / "other", code=2).output
    assert files(OUT) == before
    kerngen("build", tmp_path / "other", "--out", tmp_path / "made")
    assert "total.py" in files(tmp_path / "made")


def test_without_source_setting_any_source_goes_to_the_projects_output(
    kerngen: Run,
) -> None:
    edit(Path("pyproject.toml"), '[tool.kerngen]\nout = "made"\n')
    kerngen("build", "dsl/scale.kern")
    assert "scale.py" in files(Path("made"))


@pytest.mark.parametrize("command", ["build", "check"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "'nowhere' does not exist"),
        ("nowhere.kern", "'nowhere.kern' does not exist"),
        ("pyproject.toml", "'pyproject.toml' is not a .kern file"),
        ("void", "There are no .kern files in 'void'"),
    ],
)
def test_wrong_sources_exit_1(
    kerngen: Run, command: str, path: str, message: str
) -> None:
    Path("void").mkdir()
    assert message in kerngen(command, path, code=1).stderr


def test_a_folder_without_sources_leaves_the_output_alone(kerngen: Run) -> None:
    kerngen("build")
    before = files(OUT)
    (SOURCE / "scale.kern").unlink()
    (SOURCE / "deep" / "total.kern").unlink()
    assert "There are no .kern files" in kerngen("build", code=1).stderr
    assert files(OUT) == before


def test_a_file_for_the_output_is_refused(kerngen: Run) -> None:
    edit(Path("file"), "mine")
    result = kerngen("build", "--out", "file", code=1)
    assert "file' is a file, not a folder" in result.stderr
    assert Path("file").read_text("utf-8") == "mine"


def test_a_file_that_cant_be_read_is_named(
    kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str | Path, *_: int) -> int:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(os, "open", refuse)
    result = kerngen("check", "dsl/scale.kern", code=1)
    assert "dsl/scale.kern': Permission denied." in result.stderr


@pytest.mark.parametrize(
    "words",
    [("check",), ("watch",), ("layout",), ("verify",), ("new",), ("bench", "--json")],
)
def test_a_name_that_the_system_refuses_is_a_message(
    kerngen: Run, words: tuple[str, ...]
) -> None:
    result = kerngen(*words, "x" * 300, code=1)
    assert f"Error: '{Path.cwd()}" in result.stderr or "Error: 'xxx" in result.stderr
    assert os.strerror(errno.ENAMETOOLONG) in result.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("verify", "There are no kernels in 'empty.kern'."),
        ("bench", "There are no kernels in 'empty.kern'."),
        ("layout", "There are no structs in the file."),
    ],
)
def test_a_file_without_what_is_asked_for(
    kerngen: Run, command: str, message: str
) -> None:
    edit(Path("empty.kern"), "")
    assert message in kerngen(command, "empty.kern", code=1).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.kerngen]\nsourc = 'dsl'", "not {'sourc': 'dsl'}"),
        ("[tool.kerngen]\nsource = 1", "not {'source': 1}"),
        ("[tool]\nkerngen = 1", "not 1."),
        ("tool = 3", "'tool' is a table, not 3."),
        ("[tool.", "can't be read"),
    ],
)
def test_wrong_settings_are_named(kerngen: Run, text: str, message: str) -> None:
    edit(Path("pyproject.toml"), text)
    result = kerngen("build", code=1)
    assert "pyproject.toml'" in result.stderr
    assert message in result.stderr


def test_a_pyproject_without_settings_gives_no_defaults(kerngen: Run) -> None:
    edit(Path("pyproject.toml"), "[project]\nname = 'x'\n")
    kerngen("build", code=2)
    edit(SOURCE / "scale.kern", SCALE)
    kerngen("build", "dsl/scale.kern", "--out", "made")
    assert "scale.py" in files(Path("made"))


def test_a_folder_for_the_file_to_time_is_wrong_usage(kerngen: Run) -> None:
    edit(Path("two.kern/a.kern"), SCALE)
    edit(Path("two.kern/b.kern"), SCALE)
    assert "is a folder" in kerngen("bench", "two.kern", code=2).stderr


def test_verify_leaves_no_notes_of_hypothesis() -> None:
    with notes_elsewhere():
        assert not storage_directory("constants").path.is_relative_to(Path.cwd())
    assert storage_directory("constants").path.name == "constants"


@pytest.mark.parametrize("command", ["bench", "tune", "verify"])
def test_nan_is_no_budget(kerngen: Run, command: str) -> None:
    result = kerngen(command, "scale", "--budget", "nan", code=2)
    assert "'nan' is no number of seconds." in result.stderr
