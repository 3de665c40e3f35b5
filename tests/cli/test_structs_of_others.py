"""Structs of other files: one class for all modules, wherever they lie."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.sample import OUT, SOURCE, Run, edit

LIGHT = """\
struct Light { color: vec3f, falloff: f32[5] }
kernel shine(l: Light[n]) -> y: f32[n] { y[i] = l[i].falloff[0]; }
"""
SCENE = """\
use "../lights.kern";
struct Scene { lights: Light[2], gain: f32 }
kernel shade(l: Light[n], one: Light, scene: Scene) -> y: vec3f[n] {
    y[i] = l[i].color * one.falloff[1] + scene.lights[1].color * scene.gain;
}
"""


@pytest.fixture(autouse=True)
def _sources(project: Path) -> None:
    shutil.rmtree(project / SOURCE)
    edit(project / SOURCE / "lights.kern", LIGHT)
    edit(project / SOURCE / "deep" / "scene.kern", SCENE)


def test_modules_share_the_class(
    project: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kerngen("build")
    monkeypatch.setattr(sys, "path", [str((project / OUT).parent), *sys.path])
    package = Path(OUT).name
    scene: Any = importlib.import_module(f"{package}.deep.scene")
    lights: Any = importlib.import_module(f"{package}.lights")
    assert scene.Light is lights.Light
    assert "Light" not in scene.__all__
    nested = {field.name: field.type for field in scene.ShadeUniform.FIELDS}
    assert nested["one"] is lights.LightUniform is lights.Light.uniform_class
    assert nested["scene"].FIELDS[0].type is lights.LightUniform
    assert scene.Scene.FIELDS[0].type is lights.Light
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]


def test_a_build_that_leaves_the_struct_out_is_refused(
    project: Path, kerngen: Run, tmp_path: Path
) -> None:
    scene, out = project / SOURCE / "deep" / "scene.kern", tmp_path / "elsewhere"
    for option in ((), ("--check",)):
        told = kerngen("build", scene, "--out", out, *option, code=1).output
        assert "uses 'Light' of" in told
        assert "build the folder that holds both" in told
    assert not list(out.glob("**/*.py"))
    kerngen("build", project / SOURCE / "lights.kern", "--out", out)
    kerngen("build", scene, "--out", out)
    assert (out / "deep" / "scene.py").is_file()
