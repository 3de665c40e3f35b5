"""Nothing that files say or are called commands a terminal: no escape code gets through."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kerngen.cli import main
from tests.cli.sample import OUT, SCALE, SOURCE, WRONG, edit

pytestmark = [
    pytest.mark.usefixtures("project"),
    pytest.mark.skipif("os.name == 'nt'", reason="Windows has no such names"),
]

TITLE, CLEAR, CSI, BIDI = "\x1b]0;P\x07", "\x1b[2J", "\x9b31m", "\u202e"
EVIL = f"{TITLE}{CLEAR}{CSI}{BIDI}"
TOML = "\\u001b]0;P\\u0007"


def printed(*arguments: str, code: int) -> str:
    """What a command prints to a terminal, on both streams."""
    result = CliRunner(env={"FORCE_COLOR": "1"}).invoke(
        main, arguments, color=True, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    return result.output


def check_harmless(*arguments: str, code: int) -> None:
    output = printed(*arguments, code=code)
    found = [evil for evil in ("\x1b]", "\x07", CLEAR, "\x9b", BIDI) if evil in output]
    assert not found, (arguments, output)
    assert output


def test_names_of_files() -> None:
    edit(SOURCE / EVIL / f"{EVIL}.kern", SCALE.replace(" k *", "k*"))
    edit(SOURCE / f"wrong{EVIL}.kern", WRONG)
    for words in (
        "check",
        "build",
        "fmt --check",
        "fmt --diff",
        "layout",
        "show wrong",
    ):
        path = [f"dsl/{EVIL}/{EVIL}.kern"] if words == "layout" else []
        check_harmless(*words.split(), *path, code=0 if path else 1)
    check_harmless("fmt", code=0)
    (SOURCE / f"wrong{EVIL}.kern").unlink()
    check_harmless("build", code=0)
    for file in (OUT / "scale.py", *OUT.rglob("*0_P*.py")):
        edit(file, EVIL)
    check_harmless("build", "--check", code=1)
    shutil.rmtree(SOURCE / EVIL)
    check_harmless("build", code=0)
    edit(Path("other/scale.py"), EVIL)
    check_harmless("build", "--out", "other", code=1)


@pytest.mark.parametrize(
    "words",
    [
        *(
            "check",
            "build",
            "fmt",
            "fmt --check",
            "layout",
            "explain",
            "new",
            "show",
            "",
        ),
        *("build dsl --out", "new ok --name"),
        pytest.param("bench", marks=pytest.mark.nightly),
        pytest.param("tune", marks=pytest.mark.nightly),
        pytest.param("verify --kernel", marks=pytest.mark.nightly),
    ],
)
def test_arguments(words: str) -> None:
    code = {"explain": 2, "build dsl --out": 2}
    check_harmless(*words.split(), EVIL, code=code.get(words, 1 if words else 2))


@pytest.mark.parametrize(
    "text",
    [
        f'[tool.kerngen]\nsource = "{TOML}"\n',
        f'[tool.kerngen]\nx = "{TOML}"\n',
        f'[tool.kerngen]\n"{TOML}" = 1\n',
        f'[tool]\nkerngen = "{TOML}"\n',
        f'tool = "{TOML}"\n',
        f"tool = {EVIL}\n",
    ],
)
def test_settings(text: str) -> None:
    edit(Path("pyproject.toml"), text)
    check_harmless("build", code=1)


@pytest.mark.parametrize(
    "text",
    [
        f"// {EVIL}\n{SCALE}",
        f'use "{EVIL}.kern";\n',
        f"schedule {EVIL} {{ map }}\n",
        f"{SCALE}schedule scale {{ {EVIL} }}\n",
    ],
)
def test_texts(text: str) -> None:
    edit(SOURCE / "scale.kern", text)
    check_harmless("check", code=1)
    check_harmless("fmt", code=1)


def test_manifests() -> None:
    printed("build", code=0)
    manifest = OUT / "manifest.json"
    text = manifest.read_text("utf-8").replace('"scale.py"', f'"{TOML}.py"')
    edit(manifest, text)
    edit(OUT / f"{TITLE}.py", "mine")
    (OUT / "scale.py").unlink()
    check_harmless("build", "--check", code=1)
    check_harmless("build", code=0)
