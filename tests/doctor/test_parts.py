"""The doctor's parts: its self-test can fail, and no driver takes it along."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest

import kerngen.runtime as gpu
from kerngen.doctor import checks, variables
from kerngen.doctor.adapters import self_test_section
from kerngen.doctor.apart import ApartError, ask
from kerngen.doctor.checks import CHECKS, Skip, Wrong
from kerngen.doctor.findings import Status
from kerngen.doctor.probe import AdapterData
from kerngen.doctor.selftest import CheckData
from kerngen.runtime import device
from kerngen_kernels import elementwise, matmul
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
        ("hangs", "did not end within 1 s", 1),
        ("raises", "ended with exit code 1: ValueError: no device", 30),
        ("stops", "ended with exit code 0", 30),
        ("is_not_there", "No module named 'part_is_not_there'", 30),
    ],
)
def test_a_process_that_gives_no_answer(name: str, ending: str, timeout: int) -> None:
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
    monkeypatch.setattr(elementwise, "gelu", elementwise.gelu_tanh)
    with pytest.raises(Wrong, match="off by"):
        CHECKS["elementwise (gelu)"](ctx)
    monkeypatch.setattr(matmul, "matmul_nn", elementwise.add)
    with pytest.raises(gpu.ShapeError):
        CHECKS["products (matmul)"](ctx)
    changed = checks.PROBE.replace("p.inner.a", "p.inner.b.x")
    monkeypatch.setattr(checks, "PROBE", changed)
    with pytest.raises(Wrong, match="read"):
        CHECKS["layout of uniform structs"](ctx)


def test_only_the_chosen_adapter_can_fail() -> None:
    adapter = AdapterData(
        name="a",
        driver="",
        backend="Vulkan",
        type="CPU",
        kind="software",
        chosen=True,
        why="",
        features={},
        limits={},
    )
    check = CheckData(name="c", status="failed", detail="off", seconds=0.0)
    for chosen, status in ((True, Status.FAILED), (False, Status.WARNING)):
        one: AdapterData = {**adapter, "chosen": chosen}
        section = self_test_section([one], [[check]])
        assert section.status is status
        assert section.findings[0].text == "a (Vulkan): c: off"


def test_variables_are_the_runtimes() -> None:
    assert variables.ADAPTER == device.VARIABLE
    assert variables.UNCHECKED == device.UNCHECKED
    assert get_args(device.AdapterChoice) == variables.CHOICES


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("KERNGEN_ADAPTER", " GPU ", Status.OK),
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
