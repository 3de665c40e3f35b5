"""`kerngen bench` on the software adapter: what it prints, and what it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kerngen.bench.case import BenchCase
from kerngen.bench.ceilings import Ceilings, find_ceilings
from kerngen.bench.measure import SamplingLimits
from kerngen.bench.record import ResultData
from kerngen.bench.session import Session
from kerngen.runtime import Context
from tests.cli.sample import Run, edit

POWERS = """
struct Settings { gain: f32, at: vec2f }
fn cube(x: f32) -> f32 { x * x * x }
/// The outputs' length is arithmetic, and scalars have no defaults.
kernel pairs(x: f32[n], shift: vec2f, settings: Settings) -> y: f32[n / 2] {
    y[i] = cube(x[2 * i]) + x[2 * i + 1] * shift.x * settings.gain;
}
kernel first(x: f32[n]) -> y: f32[n] { y[i] = x[0] + f32(i); }
"""


@pytest.fixture(scope="module")
def found(ctx: Context) -> Ceilings:
    """Return the adapter's ceilings, which are not what these tests are about."""
    return find_ceilings(ctx, SamplingLimits(samples=3, seconds=0.01))


@pytest.fixture
def known_ceilings(found: Ceilings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no ceilings anew: one test does."""
    known = Mock(return_value=found)
    monkeypatch.setattr("kerngen.bench.session.find_ceilings", known)


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def test_a_standard_kernel(kerngen: Run, ctx: Context, tmp_path: Path) -> None:
    file, picture = tmp_path / "run.json", tmp_path / "run.png"
    said = kerngen(
        *("bench", "add", "gemv", "--quick", "--sizes", "n=1000,k=30"),
        *("--peers", "numpy", "--out", file, "--plot", picture),
    ).stdout
    run = read(file)
    assert run["adapter"]["device"] == ctx.adapter_name
    assert run["clock"] == "device"
    assert run["contestants"] == ["unchecked", "checked", "NumPy"]
    assert ctx.adapter_name in said
    assert "unchecked" in said
    add, gemv = run["results"]
    assert add["sizes"] == {"n": 1000}
    assert gemv["sizes"] == {"n": 1000, "k": 30}
    for result in (add, gemv):
        assert result["timings"].keys() == {*run["contestants"]}
        for timing in result["timings"].values():
            assert 0 < timing["low"] <= timing["median"] <= timing["high"]
        for wall in result["walls"].values():
            assert wall["loop"]["median"] > 0
            assert wall["read"]["median"] > 0
        assert result["walls"].keys() == result["timings"].keys()
    assert add["walls"]["NumPy"]["read"] == add["timings"]["NumPy"]
    assert "with a read" in said
    seconds = add["timings"]["unchecked"]["median"]
    assert 0 < add["least"] < 100 * seconds
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("known_ceilings")
def test_kernels_of_a_file(project: Path, kerngen: Run, tmp_path: Path) -> None:
    edit(project / "dsl" / "powers.kern", POWERS)
    file = tmp_path / "run.json"
    printed = kerngen(
        *(
            "bench",
            "pairs",
            "scale",
            "dsl/powers.kern",
            "dsl/powers.kern:pairs",
            "--quick",
        ),
        *("--sizes", "n=4096", "--peers", "none", "--checks", "on", "--out", file),
        "--json",
    )
    run = read(file)
    assert json.loads(printed.stdout) == run
    names = [result["name"] for result in run["results"]]
    assert names == ["pairs", "scale", "pairs", "first", "pairs"]
    assert run["contestants"] == ["checked"]
    pairs, scale, _, first, _ = run["results"]
    assert scale["bytes"] == 8 * 4096, "the project's own, not the standard one"
    assert pairs["bytes"] == 4 * 4096 + 4 * 2048
    assert pairs["operations"] == 2048 * 5
    assert first["bytes"] == 8 * 4096
    assert pairs["timings"]["checked"]["median"] > 0


@pytest.mark.usefixtures("known_ceilings")
def test_what_does_not_fit_is_said(kerngen: Run, ctx: Context, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    long = ctx.max_tensor_bytes // 4 + 1
    arguments = ("bench", "add", "--quick", "--checks", "on", "--peers", "none")
    sizes = ("--sizes", f"n={long}")
    said = kerngen(*arguments, *sizes, "--out", file, code=1).output
    assert "Nothing was timed." in said
    (result,) = read(file)["results"]
    assert result["timings"] == {}
    assert "the adapter binds at most" in result["notes"]["checked"]
    assert "the adapter binds at most" in said


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("matmul",), "Did you mean", 1),
        (("dsl/scale.kern:scal",), "There is no kernel 'scal' in 'dsl/scale.kern'", 1),
        (("dsl/lost.kern",), "does not exist", 1),
        (("add", "--sizes", "k=3"), "--sizes lacks 'n'", 2),
        (("add", "--sizes", "n=x"), "is not of the form m=4096", 2),
        (("add", "--sizes", "n=1,n=2"), "'n' is given twice", 2),
        (("--sizes", "n=1"), "--sizes needs a KERNEL", 2),
        (("add", "--peers", "jax"), "there is no 'jax'; there are torch", 2),
        (("clip and AdamW", "--sizes", "n=100"), "no size 'n': it has tensors, sh", 1),
        (("clip and AdamW", "--sizes", "tensors=5"), "--sizes lacks 'shortest'", 2),
        (
            ("clip and AdamW", "--sizes", "tensors=0,shortest=1,longest=9"),
            "'tensors' must be at least 1, not 0",
            1,
        ),
        (
            ("feed-forward", "--sizes", "m=1,width=4,inner=8,layers=0"),
            "'layers' must be at least 1, not 0",
            1,
        ),
        (("add", "--out", "lost/a.json"), "There is no folder 'lost'", 2),
        (("add", "--out", "dsl"), "'dsl' is a folder", 2),
        (("add", "--plot", "lost/a.png"), "There is no folder 'lost'", 2),
        (("add", "--plot", "a.txt"), "'a.txt' should end in one of .", 2),
        (("add", "--plot", "picture"), "'picture' should end in one of .", 2),
    ],
)
@pytest.mark.usefixtures("project")
def test_faults_of_the_user_are_messages(
    arguments: tuple[str, ...],
    message: str,
    code: int,
    kerngen: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is measured."""
    monkeypatch.setattr("kerngen.bench.session.find_ceilings", None)
    assert message in kerngen("bench", *arguments, code=code).output


@pytest.mark.usefixtures("known_ceilings")
def test_an_interrupt_keeps_what_was_found(
    kerngen: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lengths = tmp_path / "run.json", list[int]()

    results = Session.results

    def interrupted(
        session: Session, cases: Sequence[BenchCase]
    ) -> Iterator[ResultData]:
        for data in results(session, cases):
            lengths.append(len(read(file)["results"]) if file.exists() else 0)
            if len(lengths) == 3:
                raise KeyboardInterrupt
            yield data

    monkeypatch.setattr(Session, "results", interrupted)
    sizes = [word for n in (64, 65, 66, 67) for word in ("--sizes", f"n={n}")]
    arguments = ("--quick", "--checks", "on", "--peers", "none", "--out", file)
    said = kerngen("bench", "add", *sizes, *arguments, code=130).output
    assert lengths == [0, 1, 2]
    assert [each["sizes"]["n"] for each in read(file)["results"]] == [64, 65, 66]
    assert "interrupted: 3 of 4 cases timed" in said
    assert "n=65" in said


@pytest.mark.usefixtures("known_ceilings")
@pytest.mark.parametrize(
    ("source", "name"), [("one.kern", "twice"), ("bare", "elementwise.relu")]
)
def test_a_project_of_one_file_or_none(
    source: str,
    name: str,
    kerngen: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bare").mkdir()
    edit(Path("one.kern"), "kernel twice(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }")
    edit(Path("pyproject.toml"), f'[tool.kerngen]\nsource = "{source}"\n')
    file = tmp_path / "run.json"
    options = ("--quick", "--sizes", "n=64", "--peers", "none", "--checks", "on")
    kerngen("bench", name, *options, "--out", file)
    assert [result["name"] for result in read(file)["results"]] == [name]
