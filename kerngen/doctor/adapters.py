"""Findings about adapters: which there are, which one is used, and whether it works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kerngen.doctor.advice import advice
from kerngen.doctor.findings import Finding, Section, Status
from kerngen.doctor.machine import Machine
from kerngen.doctor.probe_process import ProbeError, run_probe
from kerngen.doctor.variables import ADAPTER

if TYPE_CHECKING:
    # These run in processes of their own, and need what may be missing.
    from kerngen.doctor.probe import AdapterData, ProbeData
    from kerngen.doctor.selftest import CheckData

_PATIENCE: Final = 120.0
"""Seconds: slow drivers compile shaders for a while, and hanging ones never end."""

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
    """Return the adapters that wgpu finds, or why it finds none."""
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
    """Yield the findings where `open()` takes none of the adapters."""
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
