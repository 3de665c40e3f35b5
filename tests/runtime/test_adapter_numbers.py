"""Adapters by number: their order, the choice of one, and what is not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kerngen.runtime as gpu
from kerngen.runtime.device.adapter import AdapterChoice, in_order

ROOT = Path(__file__).parents[2]


@dataclass
class Listed:
    """An adapter as wgpu lists it."""

    info: dict[str, str]


def listed(name: str, kind: str, backend: str) -> Any:
    return Listed({"device": name, "adapter_type": kind, "backend_type": backend})


def test_the_best_is_the_first() -> None:
    found = [
        listed("llvmpipe", "CPU", "Vulkan"),
        listed("llvmpipe", "CPU", "OpenGL"),
        listed("a", "IntegratedGPU", "Vulkan"),
        listed("b", "DiscreteGPU", "OpenGL"),
        listed("b", "DiscreteGPU", "Vulkan"),
        listed("c", "DiscreteGPU", "Vulkan"),
    ]
    ranked = in_order(found)
    assert [(a.number, a.name) for a in ranked] == [
        (0, "b"),
        (1, "c"),
        (2, "a"),
        (3, "llvmpipe"),
    ]
    for text, name in {
        "gpu": "b",
        "gpu:1": "c",
        " GPU:2 ": "a",
        "2": "a",
        "software": "llvmpipe",
        "software:0": "llvmpipe",
    }.items():
        picked = AdapterChoice.parse(text).pick(ranked)
        assert picked is not None
        assert picked.name == name
    for text in ("gpu:3", "4", "software:1"):
        assert AdapterChoice.parse(text).pick(ranked) is None


def test_hardware_that_opengl_alone_reaches_is_listed() -> None:
    found = [listed("lvp", "CPU", "Vulkan"), listed("old", "unknown", "OpenGL")]
    assert [adapter.name for adapter in in_order(found)] == ["old", "lvp"]


@pytest.mark.parametrize(
    "wrong", ["cuda", "gpu:", "gpu:x", "-1", "1:gpu", "reference:1"]
)
def test_choices_that_name_nothing(wrong: str) -> None:
    with pytest.raises(gpu.NoAdapter, match=f"'{wrong}'"):
        gpu.open(adapter=wrong)


def test_a_number_that_is_not_there() -> None:
    there = gpu.adapters()
    number = len(there)
    with pytest.raises(
        gpu.NoAdapter, match=rf"No adapter {number} was found: wgpu lists"
    ):
        gpu.open(adapter=number)
    with pytest.raises(gpu.NoAdapter, match=r"No adapter software:7 was found"):
        gpu.open(adapter="software:7")


OPEN_BY_NUMBER = """
import json
import kerngen.runtime as gpu

listed = gpu.adapters()
found = []
for adapter in listed:
    with gpu.open(adapter=adapter.number) as ctx:
        found.append([adapter.number, adapter.kind, ctx.adapter_name == adapter.name])
with gpu.open() as ctx:
    found.append(ctx.kind)
print(json.dumps(found))
"""


def test_two_equal_adapters_are_told_apart_by_number(tmp_path: Path) -> None:
    """Vulkan lists a driver as often as it is named: two adapters, equal in all."""
    drivers = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
    assert drivers, "The tests' software adapter is Mesa's lavapipe."
    copies = [tmp_path / f"{number}.json" for number in range(2)]
    for copy in copies:
        copy.write_bytes(drivers[0].read_bytes())
    environment = {
        **os.environ,
        "VK_DRIVER_FILES": os.pathsep.join(map(str, copies)),
        "VK_ICD_FILENAMES": os.pathsep.join(map(str, copies)),
        "KERNGEN_ADAPTER": "software:1",
    }
    done = subprocess.run(
        [sys.executable, "-c", OPEN_BY_NUMBER],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [
        [0, "software", True],
        [1, "software", True],
        "software",
    ]
