"""`kerngen doctor`, on this machine and on worse ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import kerngen.runtime as gpu
from kerngen.doctor import adapters
from kerngen.doctor.probe import AdapterData, ProbeData
from kerngen.runtime import WEBGPU_LIMITS
from tests.cli.sample import Run, edit


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin in an empty folder, without settings."""
    for name in ("KERNGEN_ADAPTER", "KERNGEN_UNCHECKED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def examined(kerngen: Run, code: int = 0) -> Any:
    """Return what the command tells scripts."""
    data = json.loads(kerngen("doctor", "--json", code=code).stdout)
    assert data["ok"] == (code == 0)
    return data


def section(data: Any, title: str) -> Any:
    (found,) = [each for each in data["sections"] if each["title"] == title]
    return found


def test_this_machine(
    ctx: gpu.Context, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # OpenGL's adapter is the same driver once more, and takes longer.
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent")
    data = examined(kerngen)
    with gpu.open() as best:
        (chosen,) = [each for each in data["adapters"] if each["chosen"]]
        assert chosen["name"] == best.adapter_name
        assert chosen["kind"] == best.kind
    assert ctx.adapter_name in {each["name"] for each in data["adapters"]}
    for adapter in data["adapters"]:
        assert {check["status"] for check in adapter["self_test"]} <= {"ok", "skipped"}
        assert adapter["limits"]["max-buffer-size"] >= 1 << 28
    versions = data["versions"]
    assert all(versions[name] for name in ("python", "kerngen", "wgpu", "wgpu-native"))
    assert section(data, "Self-test")["status"] == "ok"


ADAPTER = AdapterData(
    number=0,
    name="A",
    driver="B",
    backend="Vulkan",
    type="DiscreteGPU",
    kind="gpu",
    chosen=True,
    why="it is the only one",
    features={"shader-f16": False},
    limits=dict.fromkeys(WEBGPU_LIMITS, 1 << 30),
)


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes a while: there is one adapter, and it passes."""
    found = ProbeData(error="", native="29", adapters=[ADAPTER])
    monkeypatch.setattr(adapters, "probe", Mock(return_value=found))
    monkeypatch.setattr(adapters, "self_test", Mock(return_value=[]))


@pytest.mark.usefixtures("healthy")
def test_what_people_read(kerngen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    output = kerngen("doctor").output
    assert output.startswith("[ok] Versions\n    - Linux ")
    assert (
        "[ok] Adapters\n    - 0. A: Vulkan, DiscreteGPU, driver B\n"
        "      open() chooses this one: it is the only one\n"
        "      no f16, largest tensor 1024 MiB, "
    ) in output
    assert "[ok] Generated files\n    - No project here sets any.\n" in output
    monkeypatch.setenv("KERNGEN_ADAPTER", "cuda")
    output = kerngen("doctor", code=1).output
    assert (
        "[x] Environment\n"
        "    x KERNGEN_ADAPTER=cuda: expected gpu, software, reference, a number or both, as gpu:1, or nothing\n"
        "      -> Correct KERNGEN_ADAPTER, or unset it.\n"
    ) in output


def test_without_any_adapter(kerngen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nonexistent")
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent")
    data = examined(kerngen, code=1)
    assert data["adapters"] == []
    (finding,) = section(data, "Adapters")["findings"]
    assert finding["text"].startswith("There is no adapter: kernels run as their NumPy")
    assert "VK_ICD_FILENAMES names files that do not exist" in finding["advice"][0]


def test_without_wgpu(
    kerngen: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(tmp_path / "wgpu.py", "raise ImportError('libwgpu is broken')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    data = examined(kerngen, code=1)
    finding = section(data, "Adapters")["findings"][0]
    assert finding["text"] == "wgpu does not start: ImportError: libwgpu is broken"
    assert "pip install --force-reinstall wgpu" in finding["advice"][0]


@pytest.mark.usefixtures("healthy")
def test_generated_files(kerngen: Run, project: Path) -> None:
    found = section(examined(kerngen), "Generated files")
    assert found["status"] == "warning"
    assert found["findings"][0]["advice"] == ["Run 'kerngen build'."]
    kerngen("build")
    assert section(examined(kerngen), "Generated files")["status"] == "ok"
    (project / "gen" / "kernels" / "__pycache__" / "kerngen.json").unlink()
    assert section(examined(kerngen), "Generated files")["status"] == "ok", "a clone"
    edit(project / "dsl" / "scale.kern", "kernel wrong\n")
    found = section(examined(kerngen), "Generated files")
    assert "is out of date for dsl/scale.kern." in found["findings"][0]["text"]
