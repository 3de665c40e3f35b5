"""Advice about missing adapters, by the facts about the machine.

Every rule that fits adds its part, in the order of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from kerngen.doctor.machine import Machine

_Rule: TypeAlias = tuple[Callable[[Machine], bool], str]

_PACKAGES: Final = {
    "debian": "apt-get install mesa-vulkan-drivers",
    "ubuntu": "apt-get install mesa-vulkan-drivers",
    "fedora": "dnf install mesa-vulkan-drivers",
    "rhel": "dnf install mesa-vulkan-drivers",
    "arch": "pacman -S vulkan-icd-loader vulkan-swrast",
    "alpine": "apk add vulkan-loader mesa-vulkan-swrast",
    "suse": "zypper install libvulkan1 libvulkan_lvp",
}
"""What installs Vulkan's loader and a software adapter, by family of distributions."""

_GPU_RULES: Final[tuple[_Rule, ...]] = (
    (
        lambda m: bool(m.missing_manifests),
        (
            "{limited_by} names files that do not exist, and hides all other drivers: unset "
            "it."
        ),
    ),
    (
        lambda m: bool(m.limited_by) and not m.missing_manifests,
        (
            "{limited_by} hides all drivers but those that it names: unset it, unless "
            "that is intended."
        ),
    ),
    (
        lambda m: m.has_nvidia and not _has_driver(m, "nvidia") and m.is_container,
        (
            "There is an NVIDIA GPU, but the container lacks its Vulkan driver: start it with "
            "NVIDIA_DRIVER_CAPABILITIES=all (or with 'graphics' among them), or mount the "
            "host's nvidia_icd.json into /etc/vulkan/icd.d. libvulkan1, libegl1 and libxext6 "
            "must be installed inside."
        ),
    ),
    (
        lambda m: m.has_nvidia and not _has_driver(m, "nvidia"),
        (
            "There is an NVIDIA GPU, but no Vulkan driver for it (nvidia_icd.json): install "
            "NVIDIA's full driver, not only its part for compute (CUDA)."
        ),
    ),
    (
        lambda m: bool(m.closed_nodes),
        (
            "There is a GPU that you may not open (/dev/dri): add yourself to the group "
            "'render', 'sudo usermod -aG render $USER', and log in again."
        ),
    ),
    (
        lambda m: m.is_wsl and not _has_driver(m, "dzn"),
        (
            "In WSL 2, Vulkan needs Mesa's driver 'dzn', which Debian and Ubuntu leave out; "
            "newer builds of Mesa have it. Or use Python for Windows, where GPUs work as they "
            "are."
        ),
    ),
    (
        lambda m: m.is_container and not m.render_nodes and not m.has_nvidia,
        (
            "A container sees no GPU unless it is given one: 'docker run --gpus all' for "
            "NVIDIA's, '--device /dev/dri' for others."
        ),
    ),
    (
        lambda m: m.system == "darwin",
        (
            "On macOS, GPUs are found through Metal, which every Mac since 2012 has; virtual "
            "machines may lack it."
        ),
    ),
    (
        lambda m: m.system == "win32",
        (
            "On Windows, GPUs are found through DirectX 12 and Vulkan: install the driver of "
            "the GPU's vendor. Remote desktops and virtual machines may hide the GPU."
        ),
    ),
)


def advice(machine: Machine, kinds: set[str]) -> Iterator[str]:
    """Yield advice for a machine that has adapters of these kinds."""
    if "gpu" in kinds:
        return
    for fits, text in _GPU_RULES:
        if fits(machine):
            yield text.format(limited_by=machine.limited_by)
    if "software" not in kinds and machine.system == "linux":
        yield from _software(machine)


def _software(machine: Machine) -> Iterator[str]:
    """Yield how a machine gets a software adapter, on which every kernel runs."""
    commands = [text for name, text in _PACKAGES.items() if name in machine.family]
    command = commands[0] if commands else "install Mesa's Vulkan drivers (lavapipe)"
    if not machine.has_loader:
        yield f"Vulkan's loader, libvulkan.so.1, is not installed: {command}"
    elif not any("lvp" in name for name in machine.manifests):
        yield f"There is no software adapter, on which kernels run without a GPU: {command}"


def _has_driver(machine: Machine, name: str) -> bool:
    return any(name in manifest for manifest in machine.manifests)
