"""Tuning as a function of plain data: results of one adapter are merged, of two refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.tune import merged, text_of, tune

TEXT = "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = 0.3 * x[i]; }"


def found(n: int, adapter: str = "One", kernel: str = "scale") -> dict[str, Any]:
    about = {"Adapter": adapter, "Versions": "1", "Date": "x", "Runtime checks": "on"}
    row = {
        "stage": "y",
        "sizes": {"n": n},
        "schedule": "map",
        "best": "map",
        "needs": ["adapter.subgroups"],
        "before": 2e-3,
        "after": 1e-3,
        "verdicts": {"timed": 3},
        "wrong": [],
    }
    return {"kernel": kernel, "whole": True, "about": about, "results": [row]}


def test_results_are_merged_to_one_file() -> None:
    whole = merged([found(64), found(4096), found(64)])
    text = text_of(whole, "scale.kern")
    assert json.loads(json.dumps(whole)) == whole
    assert text.startswith(
        "//! Schedules found by 'kerngen tune'.\n//!\n//! Adapter: One"
    )
    assert text.count("// scale, n = ") == 2
    assert "n >= 2048 and n <= 8192 and adapter.subgroups" in " ".join(text.split())


@pytest.mark.parametrize(
    ("several", "text"),
    [
        ([found(64), found(128, "Two")], "different adapter, 'One' and 'Two'"),
        ([found(64), found(64, kernel="other")], "of 'scale' and 'other'"),
        ([], "there are no results"),
    ],
)
def test_times_that_can_not_be_compared(several: list[Any], text: str) -> None:
    with pytest.raises(gpu.ArgumentError, match=text):
        merged(several)


def test_what_can_not_be_tuned() -> None:
    with pytest.raises(gpu.UnknownNameError, match="scales"):
        tune(TEXT, "scales")
    with pytest.raises(gpu.UnknownNameError, match="'z'"):
        tune(TEXT, "scale", stage="z")
    with pytest.raises(gpu.NoAdapter, match="no adapter to tune for"):
        tune(TEXT, "scale", adapter="reference")
    with pytest.raises(gpu.ArgumentError, match="the sizes lack 'n'"):
        tune(TEXT, "scale", [{"m": 3}], adapter="software")


def test_a_gradient_is_tuned_apart_from_its_kernel() -> None:
    text = f"{TEXT}\nkernel dscale = gradient of scale by x;"
    found = tune(text, "dscale", [{"n": 64}], adapter="software", budget=1.0)
    assert [row["sizes"] for row in found["results"]] == [{"n": 64}]


def test_a_file_of_another_adapter(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scale.kern").write_text(TEXT)
    Path("tuned.kern").write_text(text_of(found(64, "Other, 1.0"), "scale.kern"))
    words = ["tune", "scale.kern:scale", "--sizes", "n=4096", "--out", "tuned.kern"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "'tuned.kern' has the times of another adapter, Other, 1.0" in done.output
    done = CliRunner().invoke(main, [*words[:4], "--jobs", "9"])
    assert done.exit_code == 2
    assert "of this model" in done.output


@pytest.mark.nightly
def test_two_adapters_side_by_side(tmp_path: Path, monkeypatch: Any) -> None:
    """Mesa's software adapter, named twice to Vulkan's loader, is two of one model."""
    driver, *_ = Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json")
    twice = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in twice:
        file.write_bytes(driver.read_bytes())
    monkeypatch.setenv("VK_DRIVER_FILES", ":".join(map(str, twice)))
    monkeypatch.delenv("KERNGEN_ADAPTER", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("scale.kern").write_text(TEXT)
    words = ["--sizes", "n=64", "--sizes", "n=4096", "--budget", "8", "--jobs", "2"]
    run = [sys.executable, "-m", "kerngen", "tune", "scale.kern:scale", *words]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.count("// scale, n = ") == 2
