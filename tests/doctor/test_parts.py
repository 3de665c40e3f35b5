"""The doctor's parts: its self-test can fail, and no driver takes it along."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args
from unittest.mock import Mock

import pytest
from packaging.specifiers import SpecifierSet

import kerngen.runtime as gpu
from kerngen.doctor import checks, variables, versions
from kerngen.doctor.adapters import adapters_section, self_test_section
from kerngen.doctor.apart import ApartError, ask
from kerngen.doctor.checks import CHECKS, Skip, Wrong
from kerngen.doctor.findings import Status
from kerngen.doctor.machine import Machine
from kerngen.doctor.probe import AdapterData, ProbeData
from kerngen.doctor.selftest import CheckData
from kerngen.runtime.device import adapter
from kerngen.runtime.device import opening as device
from tests.cli.sample import edit

PARTS = {
    "answers": "from kerngen.doctor.apart import answer\nprint('a driver talks')\n"
    "def main(): answer({'ok': [1, None]}); print('and goes on')",
    "echoes": "import sys\nfrom kerngen.doctor.apart import answer\n"
    "def main(): answer(sys.argv[1:])",
    "crashes": "import os\ndef main(): os.kill(os.getpid(), 11)",
    "hangs": "import time\ndef main(): time.sleep(60)",
    "raises": "def main(): raise ValueError('no device')",
    "stops": "import sys\ndef main(): sys.exit(0)",
}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make modules that end in every way."""
    for name, text in PARTS.items():
        edit(tmp_path / f"part_{name}.py", f"{text}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("parts")
def test_a_process_of_its_own_answers() -> None:
    assert ask("part_answers", timeout=30) == {"ok": [1, None]}
    assert ask("part_echoes", "a b", "'", timeout=30) == ["a b", "'"]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    ("name", "ending", "timeout"),
    [
        ("crashes", r"crashed \(SIGSEGV\)", 30),
        ("hangs", "did not end within 0.3 s", 0.3),
        ("raises", "ended with exit code 1: ValueError: no device", 30),
        ("stops", "ended with exit code 0", 30),
        ("is_not_there", "No module named 'part_is_not_there'", 30),
    ],
)
def test_a_process_that_gives_no_answer(name: str, ending: str, timeout: float) -> None:
    with pytest.raises(ApartError, match=ending):
        ask(f"part_{name}", timeout=timeout)


@pytest.mark.parametrize("name", CHECKS)
def test_checks_pass(ctx: gpu.Context, name: str) -> None:
    try:
        assert CHECKS[name](ctx)
    except Skip:
        assert name in {"f16", "subgroups", "timestamps"}


def test_checks_fail_where_kernels_are_wrong(
    ctx: gpu.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = checks.KERNELS.replace("1.0 + tanh", "1.001 + tanh")
    changed = changed.replace("a[i, p] * b[p, j]", "a[i, p] * b[min(p + 1, k - 1), j]")
    monkeypatch.setattr(checks, "KERNELS", changed)
    for name in ("elementwise (gelu)", "products (matmul)"):
        with pytest.raises(Wrong, match="off by"):
            CHECKS[name](ctx)
    changed = checks.PROBE.replace("p.inner.a", "p.inner.b.x")
    monkeypatch.setattr(checks, "PROBE", changed)
    with pytest.raises(Wrong, match="read"):
        CHECKS["layout of uniform structs"](ctx)


ADAPTER = AdapterData(
    number=0,
    name="a",
    driver="",
    backend="Vulkan",
    type="CPU",
    kind="software",
    chosen=True,
    why="",
    features={},
    limits=dict.fromkeys(device.WEBGPU_LIMITS, 1),
)


def test_only_the_chosen_adapter_can_fail() -> None:
    check = CheckData(name="c", status="failed", detail="off", seconds=0.0)
    for chosen, status in ((True, Status.FAILED), (False, Status.WARNING)):
        one: AdapterData = {**ADAPTER, "chosen": chosen}
        section = self_test_section([one], [[check]])
        assert section.status is status
        assert section.findings[0].text == "a (Vulkan): c: off"


def test_variables_are_the_runtimes() -> None:
    assert variables.ADAPTER == adapter.VARIABLE
    assert variables.UNCHECKED == device.UNCHECKED
    assert get_args(adapter.AdapterKind) == variables.CHOICES


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("KERNGEN_ADAPTER", " GPU ", Status.OK),
        ("KERNGEN_ADAPTER", "gpu:1", Status.OK),
        ("KERNGEN_ADAPTER", "2", Status.OK),
        ("KERNGEN_ADAPTER", "reference:0", Status.FAILED),
        ("KERNGEN_ADAPTER", "cuda", Status.FAILED),
        ("KERNGEN_UNCHECKED", "1", Status.OK),
        ("KERNGEN_UNCHECKED", "yes", Status.FAILED),
        ("WGPU_LIB_PATH", "/x", Status.OK),
    ],
)
def test_values_of_variables(name: str, value: str, status: Status) -> None:
    section = variables.section({name: value})
    assert section.status is status
    assert any(f"{name}={value}: " in finding.text for finding in section.findings)


@pytest.mark.parametrize(
    ("platform", "environment", "told"),
    [
        ("linux", {}, True),
        ("linux", {"XDG_RUNTIME_DIR": ""}, True),
        ("linux", {"XDG_RUNTIME_DIR": "/run/user/1000"}, False),
        ("win32", {}, False),
    ],
)
def test_what_drivers_miss_outside_of_a_login_is_told(
    platform: str,
    environment: dict[str, str],
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    section = variables.section(environment)
    assert section.status is Status.OK
    assert told is any("XDG_RUNTIME_DIR" in each.text for each in section.findings)


@pytest.mark.parametrize(
    ("installed", "wanted"),
    [
        ("0.32.0", ">=0.32"),
        ("26.10.1", "<27,>=26"),
        ("27", "<27,>=26"),
        ("0.31.9", ">=0.32"),
        ("2.0.0rc1", ">=2.0"),
        ("1.9+cpu", ">=2.0"),
        ("2.13.0+cpu", ">=2.0"),
    ],
)
def test_versions_fit_as_pip_says(installed: str, wanted: str) -> None:
    expected = SpecifierSet(wanted).contains(installed.partition("rc")[0])
    assert versions.fits(installed, wanted) is expected


def test_old_and_missing_packages_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = [
        *("wgpu>=0.32", "numpy>=2.0", "black<27,>=26; extra == 'compiler'"),
        'ipython>=8.12; extra == "notebook"',
    ]
    monkeypatch.setattr(versions, "requires", Mock(return_value=needs))
    installed = {"wgpu": "0.31.0", "numpy": "", "black": "25.1", "ipython": "1"}
    found = {**versions.versions("29"), **installed}
    section = versions.section(found)
    failed = [f for f in section.findings if f.status is Status.FAILED]
    assert [f.text for f in failed] == [
        "wgpu is 0.31.0, and kerngen needs wgpu>=0.32.",
        "numpy is not installed.",
        "black is 25.1, and kerngen needs black<27,>=26.",
    ]
    assert failed[0].advice == ('Install it: pip install "wgpu>=0.32"',)
    assert versions.section(versions.versions("29")).status is Status.OK


def test_a_choice_that_no_adapter_is_fails() -> None:
    adapter: AdapterData = {**ADAPTER, "chosen": False}
    found = ProbeData(error="", native="29", adapters=[adapter])
    machine = Machine(system="linux")
    section = adapters_section(found, machine, "gpu")
    assert section.status is Status.FAILED
    assert "KERNGEN_ADAPTER=gpu: there is no such adapter" in section.findings[-1].text
    assert adapters_section(found, machine, "reference").status is Status.OK
