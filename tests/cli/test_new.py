"""`kerngen new`: what it makes builds, type-checks and passes its tests at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from click.testing import CliRunner

from kerngen.cli import main
from tests.cli.sample import Run, edit, files
from tests.project.tree import ROOT

PATHS = os.pathsep.join((str(ROOT), str(ROOT / "generated")))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new project with a shader, of which several tests read."""
    folder = tmp_path_factory.mktemp("new") / "My-layers"
    result = CliRunner().invoke(main, ["new", str(folder), "--bind"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def made(kerngen: Run) -> Path:
    """Return a new project."""
    kerngen("new", "My-layers")
    return Path("My-layers").resolve()


def run(*command: str, project: Path, paths: str = PATHS) -> str:
    """Run a Python module in a project; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        check=False,
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, "KERNGEN_ADAPTER": "software", "PYTHONPATH": paths},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_it_says_what_to_do_next(kerngen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "new.md").read_text("utf-8")
    (shown,) = re.findall(r"```console\n\$ (.*?)```", page, re.DOTALL)
    command, _, output = shown.partition("\n")
    notes: list[str | None] = ['{"url": "file:///here"}', None]

    read_text = PathDistribution.read_text

    def read(self: PathDistribution, name: str) -> str | None:
        if name == "direct_url.json":
            return notes.pop(0)
        return read_text(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(PathDistribution, "read_text", read)
        said = kerngen(*command.split()[1:]).output
        assert said == output.replace("...", "file:///here")
        assert "package index" not in kerngen("new", "second").output
    assert "\n  cd third\n" in kerngen("new", "lost/../third").output
    assert "\n  cd 'a b'\n" in kerngen("new", "a b", "--name", "ab").output


@pytest.mark.nightly
def test_its_tests_pass(made: Path) -> None:
    options = ("-q", "-W", "error", "-p", "no:cacheprovider")
    assert "1 passed" in run("pytest", *options, project=made)


def test_with_a_shader_its_tests_pass(read_only: Path, kerngen: Run) -> None:
    project = read_only
    options = ("-q", "-W", "error", "-p", "no:cacheprovider")
    assert "2 passed" in run("pytest", *options, project=project)
    workflow = (project / ".github" / "workflows" / "test.yml").read_text("utf-8")
    steps = ["kerngen build --check", "kerngen bind shaders --check"]
    assert [
        line[len("      - run: ") :]
        for line in workflow.splitlines()
        if "kerngen b" in line
    ] == steps
    os.chdir(project)
    for step in steps:
        kerngen(*step.split()[1:])


@pytest.mark.nightly
def test_its_tests_can_fail(made: Path, kerngen: Run) -> None:
    source = made / "dsl" / "layers.kern"
    edit(source, source.read_text("utf-8").replace("+ bias[j]", "- bias[j]"))
    kerngen("build", source.parent, "--out", made / "generated" / "my_layers")
    with pytest.raises(AssertionError, match="1 failed"):
        run("pytest", "-q", "-p", "no:cacheprovider", project=made)


def test_it_is_built(made: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    assert "generated/my_layers: 0 files written" in kerngen("build").output
    kerngen("build", "--check")
    assert kerngen("check").output == "1 file checked: no errors.\n"


@pytest.mark.nightly
def test_its_page_runs(made: Path) -> None:
    page = (made / "README.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    edit(made / "example.py", example)
    paths = os.pathsep.join((PATHS, str(made / "generated")))
    assert "2.8577" in run("example", project=made, paths=paths)


@pytest.mark.nightly
def test_type_checkers_accept_it(made: Path) -> None:
    assert "no issues found in 3 source files" in run("mypy", project=made)
    assert "0 errors, 0 warnings" in run("basedpyright", project=made)


def test_nothing_is_left_of_the_template(read_only: Path) -> None:
    for path, data in files(read_only).items():
        assert re.search(rb"@(name|package|version)@", data) is None, path


def test_the_folder_one_is_in(
    kerngen: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / ".git").mkdir(parents=True)
    monkeypatch.chdir(here)
    output = kerngen("new", ".").output
    assert "Project 'here' is in '.'." in output
    assert "cd " not in output
    assert (here / "generated" / "here" / "layers.py").is_file()


def test_it_is_a_repository_where_there_is_none(
    kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kerngen("new", "first")
    ignored = ("git", "-C", "first", "check-ignore", ".hypothesis/x", "a/__pycache__/x")
    assert len(subprocess.check_output(ignored).split()) == 2
    kerngen("new", "first/inner")
    assert not Path("first/inner/.git").exists()
    monkeypatch.setenv("PATH", "")
    kerngen("new", "second")
    assert not Path("second/.git").exists()


def test_git_keeps_the_ends_of_lines_and_knows_what_is_generated(
    read_only: Path,
) -> None:
    module, source = "generated/my_layers/layers.py", "dsl/layers.kern"
    told = ("git", "check-attr", "eol", "linguist-generated", "--", module, source)
    assert subprocess.check_output(told, cwd=read_only, text=True).splitlines() == [
        f"{module}: eol: lf",
        f"{module}: linguist-generated: set",
        f"{source}: eol: lf",
        f"{source}: linguist-generated: unspecified",
    ]


def test_the_page_lists_every_file(made: Path) -> None:
    page = (ROOT / "docs" / "new.md").read_text("utf-8")
    listed = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    generated, written = "generated/", files(made).keys()
    own = {path for path in written if not path.startswith((generated, ".git/"))}
    assert own - {"README.md"} == {path for path in listed if path[-1] != "/"}


def test_a_folder_with_something_in_it_is_left_as_it_is(
    kerngen: Run, tmp_path: Path
) -> None:
    edit(tmp_path / "full" / "mine.txt", "mine")
    before = files(tmp_path)
    assert "is not empty: it has mine.txt." in kerngen("new", "full", code=1).output
    assert "is a file." in kerngen("new", "full/mine.txt", "--name=a", code=1).output
    assert files(tmp_path) == before


def test_a_name_that_is_none(kerngen: Run, tmp_path: Path) -> None:
    assert "'my-if' would do. Or give another by --name." in (
        kerngen("new", "if", code=1).output
    )
    assert list(tmp_path.iterdir()) == []
    kerngen("new", "if", "--name", "layers")
    assert (tmp_path / "if" / "generated" / "layers" / "layers.py").is_file()


def test_a_folder_that_cannot_be_made(kerngen: Run, tmp_path: Path) -> None:
    edit(tmp_path / "file", "")
    assert "/file/a': Not a directory." in kerngen("new", "file/a", code=1).output
