"""What machines look like, and what is advised for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kerngen.doctor import machine as machines
from kerngen.doctor.adapters import advice
from kerngen.doctor.machine import Machine, inspect_machine
from tests.cli.sample import edit

UBUNTU = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n'
FEDORA = "NAME=Fedora\nID=fedora\n"
LVP = "usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


def tree(root: Path, *paths: str, release: str = UBUNTU) -> Path:
    """Make a tree of empty files that stands for a machine."""
    edit(root / "etc/os-release", release)
    for path in paths:
        edit(root / path, "")
    return root


@pytest.fixture(autouse=True)
def bare_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what this very machine is, and has."""
    monkeypatch.setattr("platform.release", lambda: "6.1.0")
    monkeypatch.setattr(machines, "find_library", Mock(return_value="libvulkan.so.1"))


def test_facts_are_read_from_files(tmp_path: Path) -> None:
    root = tree(tmp_path, LVP, ".dockerenv", "dev/nvidiactl", "dev/dri/renderD128")
    assert inspect_machine(root, {"VK_ICD_FILENAMES": f"/no/a.json:{root / LVP}"}) == (
        Machine(
            system="linux",
            family=frozenset({"ubuntu", "debian"}),
            is_container=True,
            has_nvidia=True,
            manifests=("lvp_icd.x86_64.json",),
            missing_manifests=("/no/a.json",),
            limited_by="VK_ICD_FILENAMES",
            render_nodes=("renderD128",),
        )
    )


@pytest.mark.parametrize(
    ("paths", "environment", "expected"),
    [
        ([LVP], {}, []),
        ([LVP], {"VK_DRIVER_FILES": "/no.json"}, ["VK_DRIVER_FILES names files that"]),
        ([LVP], {"VK_ICD_FILENAMES": "/"}, ["VK_ICD_FILENAMES hides all drivers but"]),
        ([LVP, "dev/nvidia0"], {}, ["no Vulkan driver for it (nvidia_icd.json)"]),
        (
            [LVP, "dev/nvidia0", "run/.containerenv"],
            {},
            ["NVIDIA_DRIVER_CAPABILITIES=all", "no Vulkan driver for it"],
        ),
        ([LVP, ".dockerenv"], {}, ["'docker run --gpus all'"]),
        ([LVP, ".dockerenv", "dev/dri/renderD128"], {}, []),
        ([LVP, "dev/nvidia0", "etc/vulkan/icd.d/nvidia_icd.json"], {}, []),
    ],
)
def test_where_only_a_software_adapter_is_found(
    paths: list[str], environment: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    machine = inspect_machine(tree(tmp_path, *paths), environment)
    found = [*advice(machine, {"software"})]
    assert len(found) == len(expected), found
    for text, part in zip(found, expected, strict=True):
        assert part in text
    assert [*advice(machine, {"gpu", "software"})] == []


@pytest.mark.parametrize(
    ("release", "command"),
    [
        (UBUNTU, "apt-get install mesa-vulkan-drivers"),
        ("ID=debian\n", "apt-get install mesa-vulkan-drivers"),
        (FEDORA, "dnf install mesa-vulkan-drivers"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper install"),
        ("ID=slackware\n", "install Mesa's Vulkan drivers (lavapipe)"),
        ("", "install Mesa's Vulkan drivers (lavapipe)"),
    ],
)
def test_where_no_adapter_is_found(release: str, command: str, tmp_path: Path) -> None:
    (text,) = advice(inspect_machine(tree(tmp_path, release=release), {}), set())
    assert "There is no software adapter" in text
    assert command in text


def test_where_the_loader_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "find_library", Mock(return_value=None))
    (text,) = advice(inspect_machine(tree(tmp_path, LVP), {}), set())
    assert text.startswith("Vulkan's loader, libvulkan.so.1, is not installed: apt-get")


def test_where_a_gpu_may_not_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", Mock(return_value=False))
    root = tree(tmp_path, LVP, "dev/dri/renderD128")
    (text,) = advice(inspect_machine(root, {}), {"software"})
    assert "usermod -aG render" in text


@pytest.mark.parametrize(
    ("facts", "part"),
    [
        ({"system": "darwin"}, "Metal"),
        ({"system": "win32"}, "DirectX 12"),
        ({"system": "linux", "is_wsl": True, "manifests": ("lvp",)}, "WSL 2"),
    ],
)
def test_other_systems(facts: dict[str, Any], part: str) -> None:
    (text,) = advice(Machine(**facts), {"software"})
    assert part in text
