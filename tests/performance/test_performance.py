"""The page is what its script makes of the results that are kept; the ablations apply."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest

from kerngen.bench.record import WallsData
from kerngen.bench.run import Budget
from kerngen.compiler import Compiler
from kerngen.jit.compiling import library_of
from kerngen.source.diagnostic import CompileError
from tests.performance import __main__ as command
from tests.performance import ablation
from tests.performance.ablation import ABLATIONS, Ablation, ablate
from tests.performance.page import (
    PAGE,
    RESULTS,
    is_software,
    page,
    read,
    read_all,
)
from tests.performance.pictures import draw_all, draw_ratios


def test_the_page_is_made_of_the_results() -> None:
    found = read_all()
    assert found
    assert page(found) == PAGE.read_text("utf-8"), "run 'tools/performance --report'"
    assert {x.stem for x in RESULTS.glob("*.png")} == {
        f"{picture}-{name}" for name in found for picture in ("ratios", "roofline")
    }


def test_the_page_marks_what_tells_little() -> None:
    (name, data), *_ = read_all().items()
    data = deepcopy(data)
    result = data["run"]["results"][0]
    timing = result["timings"]["unchecked"]
    timing["median"], timing["low"], timing["high"] = 1.0, 0.9, 1.05
    result["least"] = 1.05
    row: ablation.RowData = {
        "what": "a tenth",
        "schedule": "gemm",
        "seconds": 10.0,
        "spread": 0.3,
    }
    first: ablation.RowData = {**row, "what": "as it is", "seconds": 1.0, "spread": 0.2}
    one: ablation.AblationData = {
        "kernel": "k",
        "sizes": {"n": 5},
        "rows": [first, row],
        "notes": {"a": "No such tiling.", "b": "No such tiling."},
    }
    data["ablations"] = [one]
    text = page({name: data})
    assert "| 15.0% | 105% |" in text
    assert "samples of all versions" in text
    assert "| k | n=5 | as it is | 1 s | 20.0% | 100% | `gemm` |" in text
    assert "|  |  | a tenth | 10 s | **30.0%** | 10% | `gemm` |" in text
    said = '\nLeft out: k (n=5) with "a", k (n=5) with "b". No such tiling.\n'
    assert said in text
    row["schedule"] = "gemm tile(64, 64, 16) split(4)"
    assert "Left out: k (n=5). They were measured with `split`" in page({name: data})
    slow = timing.copy()
    slow["median"] = 2.0
    walls: WallsData = {"loop": slow, "read": timing}
    result["walls"] = {"unchecked": walls}
    assert "| 1 s, 2 s, 1 s | -, -, - |" in page({name: data})
    timing["high"], result["least"] = 1.11, 1.2
    assert "| **21.0%** | > 110% |" in page({name: data})


@pytest.mark.nightly
def test_the_pictures_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.performance.pictures.RESULTS", tmp_path)
    found = read_all()
    draw_all(found)
    one = deepcopy(next(iter(found.values()))["run"])
    one["contestants"] = ["unchecked", "another"]
    for number, result in enumerate(one["results"]):
        other = result["timings"]["unchecked"].copy()
        other["median"] *= 2.0 ** (number % 5 - 2)
        result["timings"]["another"] = other
    draw_ratios(one, tmp_path / "ratios.png")
    drawn = [file.read_bytes()[:4] for file in tmp_path.glob("*.png")]
    assert (tmp_path / "ratios.png").exists()
    assert {*drawn} == {b"\x89PNG"}


@pytest.mark.nightly
def test_an_ablation_times_what_changes_a_shader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = {"m": 16, "k": 16, "n": 16}
    changes: dict[str, ablation.Change] = {
        "as before": "gemm",
        "no padding": {"pad": (0,)},
        "plain": "generic",
        "impossible": "map",
    }
    one = Ablation("matmul.matmul_tn", small, small, changes)
    monkeypatch.setattr(ablation, "ABLATIONS", (one,))
    (found,) = ablate(Budget(60))
    rows = {row["what"]: row for row in found["rows"]}
    assert {"as it is", "checked", "plain"} <= rows.keys()
    assert "as before" not in rows or rows["as it is"]["schedule"] != "gemm"
    assert rows["plain"]["schedule"] == "generic"
    assert "does not fit" in found["notes"]["impossible"]
    assert all(row["seconds"] > 0 for row in found["rows"])
    assert all("spread" in row for row in found["rows"])


def test_the_schedules_that_a_search_found_are_schedules_still(tmp_path: Path) -> None:
    found = (RESULTS / "tuned-h200.kern").read_text("utf-8")
    (tmp_path / "tuned.kern").write_text(found, encoding="utf-8")
    product = (ablation.DSL / "matmul.kern").read_text("utf-8")
    (tmp_path / "matmul.kern").write_text(product, encoding="utf-8")
    library, name = library_of(tmp_path / "tuned.kern")
    assert "kerngen tune" in Compiler(library).module(name).doc
    (tmp_path / "tuned.kern").write_text(
        found.replace("micro", "mini"), encoding="utf-8"
    )
    with pytest.raises(CompileError, match="mini"):
        Compiler(library_of(tmp_path / "tuned.kern")[0]).module(name)


def test_every_ablated_kernel_exists() -> None:
    assert all(ablation.subject_of(each.path).kernel for each in ABLATIONS)


@pytest.mark.nightly
def test_all_of_it_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    command.main(["--out", str(file), "--quick", "--budget", "600"])
    data = json.loads(file.read_text("utf-8"))
    assert all(result["timings"] for result in data["run"]["results"])
    assert len(data["ablations"]) == len(ABLATIONS)


def test_some_cases_are_measured_again(tmp_path: Path) -> None:
    """They take the places of earlier results; the others are marked with their day."""
    ((name, before),) = [x for x in read_all().items() if is_software(x[1]["run"])][:1]
    before["run"]["date"] = "2026-11-01T12:00:00+00:00"
    file = tmp_path / f"results-{name}.json"
    file.write_text(json.dumps(before), encoding="utf-8")
    command.main(["--out", str(file), "--only", "softm*", "--quick", "--budget", "60"])
    after = read(file)
    assert after["ablations"] == before["ablations"]
    names = [result["name"] for result in before["run"]["results"]]
    assert [result["name"] for result in after["run"]["results"]] == names
    again = [x for x in after["run"]["results"] if "date" not in x]
    assert [result["name"] for result in again] == ["softmax"]
    assert again[0] not in before["run"]["results"]
    with pytest.raises(SystemExit, match="'softer'"):
        command.main(["--out", str(file), "--only", "softer"])
