"""Modules whose shaders are missing: the import says why, and what to do."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from kerngen.compiler import compile_text
from kerngen.runtime import MissingShadersError

SOURCE = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in another one, whose module has no shaders."""
    folder = tmp_path / "shipped" / "inner"
    folder.mkdir(parents=True)
    (folder / "layers.py").write_text(
        compile_text(SOURCE, "layers.kern").binding, encoding="utf-8"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in [name for name in sys.modules if name.startswith("shipped")]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def message() -> str:
    with pytest.raises(MissingShadersError) as caught:
        importlib.import_module("shipped.inner.layers")
    return str(caught.value)


def test_in_a_tree_of_sources(package: Path) -> None:
    assert message() == (
        f"shipped.inner.layers: the shaders are missing: there is no folder "
        f"'{package / 'wgsl' / 'layers'}'. Run 'kerngen build' again: it writes them beside the "
        f"module."
    )
    # Of what is beside the module, a wheel may have the plan alone.
    files = compile_text(SOURCE, "layers.kern").files
    for path, data in sorted(files.items(), key=lambda file: file[0].endswith(".wgsl")):
        if path.endswith(".wgsl"):
            assert f"there are none in '{package / 'wgsl' / 'layers'}'" in message()
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_bytes(data)
    importlib.import_module("shipped.inner.layers")


@pytest.mark.parametrize(
    ("generator", "words"),
    [
        ("setuptools (84.2.1)", "setuptools packs nothing but Python"),
        ("bdist_wheel (0.43.0)", "setuptools packs nothing but Python"),
        ("hatchling 1.33.0", 'artifacts = ["*.wgsl", "*.plan"]'),
        ("flit 3.12.0", "if that builds by setuptools"),
    ],
)
def test_in_a_wheel(package: Path, generator: str, words: str) -> None:
    note = package.parent.parent / "shipped_kernels-1.2.dist-info"
    note.mkdir()
    (note / "METADATA").write_text("Name: shipped-kernels\nVersion: 1.2\n", "utf-8")
    (note / "RECORD").write_text("shipped/inner/layers.py,,\n", "utf-8")
    (note / "WHEEL").write_text(f"Generator: {generator}\n", "utf-8")
    found = message()
    assert "The wheel of 'shipped-kernels 1.2' was built without its package" in found
    assert words in found
    table = '[tool.setuptools.package-data]\n"shipped.inner" = ["wgsl/*/*"]'
    assert (table in found) == ("hatchling" not in generator)
