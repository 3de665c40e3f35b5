"""Findings about adapters: all that exist, the one that is used, and whether it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from kerngen.doctor.findings import Finding, Section, Status
from kerngen.doctor.machine import Machine
from kerngen.doctor.probe_process import ProbeError, run_probe
from kerngen.doctor.variables import ADAPTER

if TYPE_CHECKING:
    from kerngen.doctor.probe import AdapterData, ProbeData
    from kerngen.doctor.selftest import CheckData


_PATIENCE: Final = 120.0
"""Seconds to wait for a probe: slow drivers compile for long, and hanging ones forever."""

_FEATURES: Final = {
    "shader-f16": "f16",
    "subgroup": "subgroups",
    "timestamp-query": "timestamps",
}
_LIMITS: Final = {
    "max-storage-buffer-binding-size": "largest tensor {} MiB",
    "max-compute-workgroup-storage-size": "workgroup memory {} KiB",
    "max-compute-invocations-per-workgroup": "{} invocations per workgroup",
    "max-storage-buffers-per-shader-stage": "{} tensors per shader",
}
_UNITS: Final = {"MiB": 1 << 20, "KiB": 1 << 10}


def probe() -> ProbeData:
    """Return the adapters that wgpu finds, or an error in their place."""
    try:
        found: ProbeData = run_probe("kerngen.doctor.probe", timeout=_PATIENCE)
    except ProbeError as error:
        return {"error": f"listing adapters {error}", "native": "", "adapters": []}
    return found


def self_test(number: int) -> list[CheckData]:
    """Return the results of the self-test on adapter `number`."""
    try:
        done: list[CheckData] = run_probe(
            "kerngen.doctor.selftest", str(number), timeout=_PATIENCE
        )
    except ProbeError as error:
        name, why = "the self-test", str(error)
        return [{"name": name, "status": "failed", "detail": why, "seconds": 0.0}]
    return done


def adapters_section(found: ProbeData, machine: Machine, choice: str) -> Section:
    """Return the findings about adapters; `choice` is the kind in the environment."""
    kinds = {adapter["kind"] for adapter in found["adapters"]}
    to_do = tuple(advice(machine, kinds))
    findings = (*_findings(found, to_do), *_choices(found["adapters"], choice))
    return Section("Adapters", findings)


def _choices(adapters: Sequence[AdapterData], choice: str) -> Iterator[Finding]:
    """Yield the finding that `open()` takes none of the adapters, if so."""
    if not adapters or any(adapter["chosen"] for adapter in adapters):
        return
    if choice == "reference":
        yield Finding(f"{ADAPTER}=reference: kernels run in NumPy even so.")
    else:
        text = f"{ADAPTER}={choice}: there is no such adapter, and open() fails."
        yield Finding(text, Status.FAILED, (f"Unset {ADAPTER}.",))


def _findings(found: ProbeData, to_do: tuple[str, ...]) -> Iterator[Finding]:
    if found["error"]:
        text = f"wgpu does not start: {found['error']}"
        install = "Reinstall it: pip install --force-reinstall wgpu"
        yield Finding(text, Status.FAILED, (install, *to_do))
    elif not found["adapters"]:
        text = "There is no adapter: kernels run as their NumPy reference, slowly."
        yield Finding(text, Status.FAILED, to_do)
    for adapter in found["adapters"]:
        yield Finding(_described(adapter))
    if found["adapters"] and to_do:
        yield Finding("No GPU is found.", Status.WARNING, to_do)


def _described(adapter: AdapterData) -> str:
    chosen = f"\nopen() chooses this one: {adapter['why']}" if adapter["chosen"] else ""
    features = [
        f"{'' if there else 'no '}{_FEATURES[name]}"
        for name, there in adapter["features"].items()
    ]
    limits = [_limit(text, adapter["limits"][name]) for name, text in _LIMITS.items()]
    return (
        f"{_number(adapter)}{adapter['name']}: {adapter['backend']}, {adapter['type']}, driver "
        f"{adapter['driver'] or 'unknown'}{chosen}\n{', '.join((*features, *limits))}"
    )


def _number(adapter: AdapterData) -> str:
    """Return the number that `open(adapter=number)` takes, in front of the name."""
    return "" if adapter["number"] is None else f"{adapter['number']}. "


def _limit(text: str, value: int) -> str:
    scale = next((size for unit, size in _UNITS.items() if unit in text), 1)
    return text.format(value // scale)


def self_test_section(
    adapters: Sequence[AdapterData], results: Sequence[Sequence[CheckData]]
) -> Section:
    """Return the findings of the self-tests; only the adapter in use can fail."""
    if not adapters:
        return Section("Self-test", (Finding("There is no adapter to test."),))
    findings: list[Finding] = []
    for adapter, checks in zip(adapters, results, strict=True):
        failed = [check for check in checks if check["status"] == "failed"]
        worst = Status.FAILED if adapter["chosen"] else Status.WARNING
        name = f"{adapter['name']} ({adapter['backend']})"
        if not failed:
            findings.append(Finding(f"{name}: {_summary(checks)}"))
        findings += [
            Finding(
                f"{name}: {check['name']}: {check['detail']}",
                worst,
                (
                    "Update the adapter's driver, or choose another one by KERNGEN_ADAPTER.",
                ),
            )
            for check in failed
        ]
    return Section("Self-test", tuple(findings))


def _summary(checks: Sequence[CheckData]) -> str:
    passed = sum(check["status"] == "ok" for check in checks)
    skipped = [check["detail"] for check in checks if check["status"] == "skipped"]
    seconds = sum(check["seconds"] for check in checks)
    why = f"; {len(skipped)} skipped: {', '.join(skipped)}" if skipped else ""
    return f"{passed} checks passed in {seconds:.1f} s{why}"


# Advice about missing adapters, by the facts about the machine.
#
# Every rule whose condition holds adds its text, in the order of the table.


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
"""Commands that install Vulkan's loader and a software adapter, by distribution."""

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
    """Yield advice on a software adapter: it runs every kernel."""
    commands = [text for name, text in _PACKAGES.items() if name in machine.family]
    command = commands[0] if commands else "install Mesa's Vulkan drivers (lavapipe)"
    if not machine.has_loader:
        yield f"Vulkan's loader, libvulkan.so.1, is not installed: {command}"
    elif not any("lvp" in name for name in machine.manifests):
        yield f"There is no software adapter, on which kernels run without a GPU: {command}"


def _has_driver(machine: Machine, name: str) -> bool:
    return any(name in manifest for manifest in machine.manifests)
