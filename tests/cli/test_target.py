"""`kerngen build --target`: which languages, from the command line or the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.sample import OUT, Run, files

pytestmark = pytest.mark.usefixtures("project")

MODULES = {"py": "scale.py", "js": "scale.js", "ts": "scale.d.ts"}


def made() -> set[str]:
    return {kind for kind, path in MODULES.items() if path in files(OUT)}


def test_a_build_for_both_is_checked_and_pruned(kerngen: Run) -> None:
    kerngen("build", "--target", "python,typescript")
    assert made() == {"py", "js", "ts"}
    assert kerngen("build", "--target", "typescript, python", "--check").exit_code == 0
    (OUT / "scale.js").write_text("// changed", "utf-8")
    stale = kerngen("build", "--target", "python,typescript", "--check", code=1)
    assert "stale: scale.js" in stale.output
    (OUT / "scale.js").unlink()
    assert "py.typed" in files(OUT)
    kerngen("build", "--target", "typescript")
    assert made() == {"js", "ts"}
    assert not {path for path in files(OUT) if Path(path).suffix in {".py", ".typed"}}
    kerngen("build")
    assert made() == {"py"}


def test_the_project_sets_it(kerngen: Run) -> None:
    project = Path("pyproject.toml")
    project.write_text(project.read_text("utf-8") + 'target = "python,typescript"\n')
    kerngen("build")
    assert made() == {"py", "js", "ts"}
    assert "0 files written" in kerngen("build").output


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('"python,rust"', "'rust' is no target. There are 'python' and 'typescript'."),
        ("1", "'target' lists languages, such as \"python,typescript\", not 1."),
    ],
)
def test_a_wrong_setting_is_named(kerngen: Run, setting: str, message: str) -> None:
    project = Path("pyproject.toml")
    project.write_text(project.read_text("utf-8") + f"target = {setting}\n")
    assert message in kerngen("build", code=1).output


def test_a_wrong_option_is_named(kerngen: Run) -> None:
    output = kerngen("build", "--target", "js", code=2).output
    assert "'js' is no target. There are 'python' and 'typescript'." in output
