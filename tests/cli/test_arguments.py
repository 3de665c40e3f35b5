"""What commands make of their arguments, and of the project around them."""

from __future__ import annotations

import errno
import os
import re
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from hypothesis.configuration import storage_directory

from kerngen import __version__
from kerngen.cli import main
from kerngen.cli.arguments.paths import PathType
from kerngen.verify.notes import notes_elsewhere
from tests.cli.sample import OUT, SCALE, SOURCE, TOTAL, WRONG, Run, edit, files

pytestmark = pytest.mark.usefixtures("project")


def test_version(kerngen: Run) -> None:
    for option in ("--version", "-V"):
        said = kerngen(option).output
        assert said.startswith(f"kerngen {__version__} (Python 3.")
        assert f", wgpu {version('wgpu')})" in said


def test_the_list_of_commands_has_whole_sentences(kerngen: Run) -> None:
    _, _, listed = kerngen("--help").output.partition("Commands:\n")
    names = [line.split()[0] for line in listed.splitlines()]
    assert names[:3] == ["new", "build", "watch"]
    assert len(names) == len(main.commands)
    assert all(line.endswith(".") for line in listed.splitlines())
    assert "..." not in listed


@pytest.mark.parametrize("name", main.commands)
def test_the_examples_of_a_command_are_taken(kerngen: Run, name: str) -> None:
    Path("kernels").mkdir()  # which some of them write to
    _, _, lines = kerngen(name, "--help").output.partition("Examples:\n")
    examples = [
        shlex.split(re.split(r" (?:[<>]|&&) ", line)[0], comments=True)
        for line in lines.splitlines()
    ]
    assert examples
    for kerngen_, command, *arguments in examples:
        if kerngen_ == "kerngen":
            assert command == name
            main.commands[name].make_context(name, arguments)


def test_shells_complete_commands_options_paths_and_codes() -> None:
    shell = ShellComplete(main, {}, "kerngen", "_KERNGEN_COMPLETE")

    def completed(*words: str) -> list[tuple[str, str]]:
        *before, begun = words
        return [(i.type, i.value) for i in shell.get_completions(before, begun)]

    assert completed("bu") == [("plain", "build")]
    assert completed("build", "--o") == [("plain", "--out")]
    assert completed("build", "ds") == [("file", "ds")]
    assert completed("tune", "k", "--out", "t") == [("file", "t")]
    assert ("plain", "KG0404") in completed("explain", "kg04")


def test_quiet_leaves_errors_and_changes(kerngen: Run) -> None:
    kerngen("fmt", "-q")
    for words in (("build",), ("build", "--check"), ("check",), ("fmt",)):
        assert kerngen(*words, "-q").output == ""
    edit(SOURCE / "scale.kern", SCALE)
    assert kerngen("fmt", "--check", "-q", code=1).output == ""
    assert "-kernel scale" in kerngen("fmt", "--diff", "-q", code=1).output
    edit(SOURCE / "scale.kern", SCALE.replace("k *", "k +"))
    assert "stale: scale.py" in kerngen("build", "--check", "-q", code=1).output
    edit(SOURCE / "scale.kern", WRONG)
    assert "error[KG" in kerngen("check", "-q", code=1).output
    assert "error[KG" in kerngen("build", "-q", code=1).output


def test_an_option_is_of_one_kind_in_all_commands() -> None:
    kinds: dict[str, set[tuple[object, ...]]] = {}
    for command in main.commands.values():
        for option in command.params:
            if isinstance(option, click.Option):
                is_path = isinstance(option.type, PathType)
                kind = (option.is_flag, option.multiple, is_path)
                kinds.setdefault(option.opts[0], set()).add(kind)
    assert [name for name, found in kinds.items() if len(found) > 1] == []


@pytest.mark.parametrize(
    "words",
    [
        ("build", ""),
        ("build", "dsl", "--out", ""),
        ("check", ""),
        ("fmt", ""),
        ("layout", ""),
        ("new", ""),
        ("show", "scale", ""),
        ("bench", "--out", ""),
        ("bench", "--plot", ""),
        ("tune", "scale", "--out", ""),
    ],
)
def test_no_path_is_empty(kerngen: Run, words: tuple[str, ...]) -> None:
    assert "a path can't be empty" in kerngen(*words, code=2).output


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
    [("check",), ("watch",), ("layout",), ("verify",), ("new",), ("bench", "--out")],
)
def test_a_name_that_the_system_refuses_is_a_message(
    kerngen: Run, words: tuple[str, ...]
) -> None:
    result = kerngen(*words, "x" * 300, code=1)
    assert f"Error: '{Path.cwd()}" in result.stderr or "Error: 'xxx" in result.stderr
    reasons = (os.strerror(errno.ENAMETOOLONG), "does not exist")  # Python 3.14's
    assert any(reason in result.stderr for reason in reasons)


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
        ("[tool.kerngen]\nsourc = 'dsl'", ":2: [tool.kerngen] has no setting 'sourc'"),
        ("[tool.kerngen]\nsourc = 'dsl'", "Did you mean 'source'?"),
        ("\n[tool.kerngen]\nout = 1", ":3: 'out' is a path, such as \"out\", not 1."),
        ("tool.kerngen.out = ''", ":1: 'out' can't be empty; '.' is this file's"),
        ("[tool]\nkerngen = 1", ":2: 'tool.kerngen' is a table, not 1."),
        ("tool = 3", ":1: 'tool' is a table, not 3."),
        ("a = 1\n[tool.\nb = 1", ":2: Invalid"),
        ('a = 1\nb = "', ":2: "),
        ("[tool.kerngen]\nsource = 'none'", "which pyproject.toml names as 'source'"),
        ("[tool.kerngen]\nsource = 'dsl'\nout = 'gen/re'", "'re_kernels' would do"),
        ("[tool.kerngen]\nsource = 'dsl'\nout = '.'", "it is a project's own folder"),
    ],
)
def test_wrong_settings_are_named(kerngen: Run, text: str, message: str) -> None:
    edit(Path("pyproject.toml"), text)
    result = kerngen("build", code=1)
    assert "pyproject.toml" in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize("command", ["build", "check", "fmt", "show"])
def test_broken_settings_stop_every_command(kerngen: Run, command: str) -> None:
    """As ruff and black have it: what they say might be meant for the file."""
    edit(Path("pyproject.toml"), "[tool.kerngen\n")
    words = (command, "scale", "dsl") if command == "show" else (command, "dsl")
    assert "Error: pyproject.toml:1: Expected" in kerngen(*words, code=1).output
    Path("pyproject.toml").write_bytes(b"\xff")
    assert "pyproject.toml: The file is not in UTF-8." in kerngen(*words, code=1).output


def test_a_pyproject_of_others_is_passed_over(
    kerngen: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with ruff, one without our settings is of another tool."""
    edit(Path("dsl/deep/pyproject.toml"), "[project]\nname = 'x'\n")
    monkeypatch.chdir("dsl/deep")
    kerngen("build")
    assert "scale.py" in files(project / OUT)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("numpy", "import a package 'numpy'. 'numpy_kernels' would do."),
        ("gen/random", "'random' is a module of Python's standard library"),
        ("1a", "'_1a' would do."),
        ("my-kernels", "'my_kernels' would do."),
        ("if", "'if' is a keyword of Python. 'if_' would do."),
        (".", "it is a project's own folder"),
        ("../project", "it is a project's own folder"),
    ],
)
@pytest.mark.parametrize("command", ["build", "watch"])
def test_what_python_cant_import_is_no_output(
    kerngen: Run, command: str, out: str, message: str
) -> None:
    before = files(Path())
    assert message in kerngen(command, "--out", out, code=2).stderr
    assert files(Path()) == before


def test_inside_of_a_package_no_name_hides_another(kerngen: Run) -> None:
    edit(Path("app/__init__.py"), "")
    kerngen("build", "--out", "app/random")
    kerngen("build", "--out", "app/if", code=2)
    kerngen("build", "--out", "../elsewhere")


@pytest.mark.parametrize(
    "name", ["<stdin>", "dsl/new.kern", "dsl/scale.kern", "link/deep/../scale.kern"]
)
def test_stdin_is_a_source(kerngen: Run, name: str) -> None:
    """Under a file's name it stands in its place, in its folder."""
    Path("link").symlink_to("dsl")
    used = "deep/total.kern" if "/" in name else "dsl/deep/total.kern"
    text = f'use "{used}";\n{WRONG}'
    given = ("--stdin-filename", name) if "/" in name else ()
    said = kerngen("check", "-", *given, code=1, stdin=text).output
    assert f"--> {name}:2:" in said
    assert "1 error\n" in said
    said = kerngen("check", "-", *given, stdin=f'use "{used}";').output
    assert said == "1 file checked: no errors.\n"


@pytest.mark.parametrize("name", ["dsl", ".", "..", "/", "dsl/new.txt"])
def test_stdin_is_called_as_a_file_of_kernels(kerngen: Run, name: str) -> None:
    said = kerngen("check", "-", "--stdin-filename", name, code=2, stdin=SCALE).output
    assert f"--stdin-filename '{name}' is not a .kern file." in said


@pytest.mark.parametrize("command", ["check", "fmt"])
def test_only_stdin_is_named(kerngen: Run, command: str) -> None:
    words = (command, "dsl/scale.kern", "--stdin-filename", "new.kern")
    assert "give '-' as well" in kerngen(*words, code=2).output


def test_commands_that_read_stdin(kerngen: Run) -> None:
    struct = f"struct S {{ a: f32 }}\n{SCALE}"
    shown = kerngen("show", "scale", "-", stdin=SCALE).output
    assert "stage y" in shown
    assert "in Python" not in shown
    assert "S  4 bytes" in kerngen("layout", "-", stdin=struct).output
    assert "kernel scale(" in kerngen("fmt", "-", stdin=SCALE).output
    for command in ("build", "watch", "verify"):
        assert "reads no stdin" in kerngen(command, "-", code=2).output


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
    def folder() -> Path:
        found: Any = storage_directory("constants")
        return Path(getattr(found, "path", found))  # older releases return the path

    with notes_elsewhere():
        assert not folder().is_relative_to(Path.cwd())
    assert folder().name == "constants"


@pytest.mark.parametrize("command", ["bench", "tune", "verify"])
def test_nan_is_no_budget(kerngen: Run, command: str) -> None:
    result = kerngen(command, "scale", "--budget", "nan", code=2)
    assert "'nan' is not a number of seconds." in result.stderr
