"""The README's program builds, its example runs, and its figures are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kerngen.compiler import compile_text
from kerngen.runtime import Context
from kerngen.schedule.strategies import STRATEGIES
from tests.project.tree import ROOT

README = (ROOT / "README.md").read_text("utf-8")


RUNTIME = (ROOT / "docs" / "runtime.md").read_text("utf-8")
LAYOUT = (ROOT / "docs" / "layout.md").read_text("utf-8")


def block(language: str, page: str = README) -> str:
    """The first code block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def build_and_run(folder: Path, page: str, module: str) -> str:
    """Build a page's program, run its example, and return what the build said."""
    (folder / "kernels").mkdir()
    source = folder / "kernels" / f"{module}.kern"
    source.write_text(block("rust", page), encoding="utf-8")
    command = "-m kerngen.cli build kernels --out my_kernels".split()
    built = subprocess.run(
        [sys.executable, *command],
        check=True,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    (folder / "example.py").write_text(block("python", page), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-W", "error", "example.py"], check=True, cwd=folder
    )
    return built.stdout


def test_the_example_runs(ctx: Context, tmp_path: Path) -> None:
    assert ctx.kind != "reference"
    assert build_and_run(tmp_path, README, "layers") in README


def test_the_examples_of_the_runtime_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNGEN_ADAPTER", "software")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", RUNTIME, re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(example, {})


def test_the_example_of_layouts_runs(ctx: Context, tmp_path: Path) -> None:
    assert ctx.kind != "reference"
    build_and_run(tmp_path, LAYOUT, "lights")
    shaders = (tmp_path / "my_kernels" / "wgsl").glob("*.wgsl")
    assert any(block("wgsl", LAYOUT) in file.read_text("utf-8") for file in shaders)


@pytest.mark.parametrize("name", ["kernels", "batch", "training"])
def test_the_examples_of_other_pages_run(
    name: str, ctx: Context, tmp_path: Path
) -> None:
    assert ctx.kind != "reference"
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    (tmp_path / "example.py").write_text(block("python", page), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-W", "error", "example.py"], check=True, cwd=tmp_path
    )


def test_the_languages_page_compiles() -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    blocks = re.findall(r"```rust\n(.*?)```", page, re.DOTALL)
    compiled = compile_text("\n".join(blocks), "page.kern")
    names = [kernel.name for kernel in compiled.module.kernels]
    assert names == ["example", "descend", "project", "fall", "shuffle"]
    strategies = {strategy.name for strategy in STRATEGIES.values()}
    assert strategies == set(re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_what_pages_refer_to_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_map_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    named = [
        ROOT / "kerngen" / folder / name
        for folder, names in rows
        for name in re.findall(r"`([^`]+)`", names)
    ]
    assert len(named) > 15
    assert [path for path in named if not path.exists()] == []
    paths = re.findall(r"`((?:\w+/)+[\w*]+\.\w+)`", text)
    for path in paths:
        assert list((ROOT / "kerngen").glob(path)) or list(ROOT.glob(path)), path
