"""Structs of other files: one class for all modules, wherever they lie."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kerngen.runtime as gpu
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


@contextmanager
def modules(
    project: Path, monkeypatch: pytest.MonkeyPatch, *names: str
) -> Generator[list[Any]]:
    """Import what was built; it is forgotten at the end."""
    monkeypatch.setattr(sys, "path", [str((project / OUT).parent), *sys.path])
    package = Path(OUT).name
    yield [importlib.import_module(f"{package}.{name}") for name in names]
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]


def test_modules_share_the_class(
    project: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kerngen("build")
    with modules(project, monkeypatch, "deep.scene", "lights") as (scene, lights):
        assert scene.Light is lights.Light
        assert "Light" not in scene.__all__
        nested = {field.name: field.type for field in scene.ShadeUniform.FIELDS}
        assert nested["one"] is scene.LightUniform
        assert issubclass(scene.LightUniform, lights.Light)
        assert nested["scene"].FIELDS[0].type is scene.LightUniform
        assert not hasattr(lights, "LightUniform"), "no kernel of its own takes a Light"
        assert scene.Scene.FIELDS[0].type is lights.Light


OTHER = """\
use "deep/scene.kern";
struct Light { gain: f32 }
kernel look(scene: Scene, l: Light[n]) -> y: f32[n] {
    y[i] = scene.lights[1].falloff[2] + scene.gain + l[i].gain;
}
"""


def test_a_struct_that_is_held_may_share_its_name(
    project: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A uniform buffer needs a layout of the other Light, which the file doesn't see."""
    edit(project / SOURCE / "other.kern", OTHER)
    kerngen("build")
    with modules(project, monkeypatch, "other", "lights", "deep.scene") as found:
        other, lights, scene = found
        assert "Light_" not in other.__all__
        theirs = lights.Light((0, 0, 0), range(5))
        given = scene.Scene((theirs, theirs), 10.0)
        with gpu.open(adapter="reference") as ctx:
            light = ctx.vector([other.Light(100.0)], other.Light)
            assert other.look(light, scene=given).numpy().tolist() == [112.0]
        uniform = other.LookUniform(n=1, scene=given)
        held = other.LookUniform.unpack(uniform.pack()).scene
        assert held == given


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
