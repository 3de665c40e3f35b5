"""Projects of several files: what `use` brings in, and what it makes depend on what."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32
from tests.cli.sample import OUT, SCALE, SOURCE, Run, edit, files, times
from tests.project.tree import ROOT

MATH = """\
use "base.kern";
const SLOPE: f32 = 0.25;
fn leaky(x: f32) -> f32 { if x > 0.0 { x } else { SLOPE * half(x) } }
kernel not_again(x: f32[n]) -> y: f32[n] { y[i] = leaky(x[i]); }
"""
BASE = "const PART: f32 = 0.5;\nfn half(x: f32) -> f32 { PART * x }\n"
LAYER = """\
use "shared/math.kern";
const PART: f32 = 8.0;
fn half(x: f32) -> f32 { x / PART }
kernel layer(x: f32[m, k], w: f32[k, n]) -> y: f32[m, n] {
    y[i, j] = leaky(sum[p] x[i, p] * w[p, j]) + SLOPE * half(1.0);
}
"""
TUNED = 'use "layer.kern";\nschedule layer when m == 1 { generic }\n'

Load = Callable[[str], ModuleType]


@pytest.fixture(autouse=True)
def _sources(project: Path) -> None:
    shutil.rmtree(project / SOURCE)
    edit(project / SOURCE / "layer.kern", LAYER)
    edit(project / SOURCE / "shared" / "math.kern", MATH)
    edit(project / SOURCE / "shared" / "base.kern", BASE)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Return what imports a generated module anew."""
    monkeypatch.setattr(sys, "path", [str(OUT.parent.resolve()), *sys.path])

    def forget() -> None:
        for name in [n for n in sys.modules if n.split(".")[0] == OUT.name]:
            del sys.modules[name]

    def fresh(name: str) -> ModuleType:
        forget()
        importlib.invalidate_caches()
        return importlib.import_module(f"{OUT.name}.{name}")

    yield fresh
    forget()


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    z = x.astype(np.float64) @ w.astype(np.float64)
    return np.where(z > 0, z, 0.25 * 0.5 * z) + 0.25 / 8


def labels(module: ModuleType, kernel: str) -> list[str]:
    """The shaders that the plan names, in the order of preference."""
    plan = Path(str(module.__file__)).parent / "wgsl" / "layer" / "layer.plan"
    found = re.findall(r"run ([\w.]+)\(", plan.read_text("utf-8"))
    return [name for name in found if name.startswith(f"{kernel}.")]


def test_a_kernel_that_calls_through_three_files_runs(
    kerngen: Run, ctx: gpu.Context, load: Load
) -> None:
    kerngen("build")
    layer = load("layer")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 7)).astype(np.float32)
    w = rng.normal(size=(7, 6)).astype(np.float32)
    y = layer.layer(ctx.matrix(x, f32), ctx.matrix(w, f32))
    np.testing.assert_allclose(y.numpy(), expected(x, w), rtol=1e-5, atol=1e-5)
    reference = layer.layer_reference(x.astype(np.float64), w.astype(np.float64))
    np.testing.assert_allclose(reference, expected(x, w), rtol=1e-12)


def test_a_module_offers_its_own_items_alone(kerngen: Run, load: Load) -> None:
    kerngen("build")
    layer = load("layer")
    assert {"PART", "layer", "layer_reference", "LayerUniform"} == set(layer.__all__)
    assert not hasattr(layer, "not_again")
    assert not hasattr(layer, "SLOPE")
    assert layer.PART == 8.0


def test_a_file_without_kernels_becomes_an_empty_module(
    kerngen: Run, load: Load
) -> None:
    edit(SOURCE / "tuned.kern", TUNED)
    kerngen("build")
    assert load("tuned").__all__ == []
    assert load("shared.base").__all__ == []
    assert not [path for path in files(OUT) if path.startswith("wgsl/tuned")]


def test_a_lone_file_may_use_any_file_beside_it(kerngen: Run, tmp_path: Path) -> None:
    edit(tmp_path / "lone" / "layer.kern", LAYER.replace("shared", "../shared"))
    edit(tmp_path / "shared" / "math.kern", MATH)
    edit(tmp_path / "shared" / "base.kern", BASE)
    kerngen("build", tmp_path / "lone" / "layer.kern", "--out", "made")
    made = files(Path("made"))
    assert b"from lone/layer.kern (" in made["layer.py"]
    assert not [path for path in made if "math" in path]
    # Schedules are a project's to share: a file beside a lone one gives it none.
    edit(tmp_path / "lone" / "tuned.kern", TUNED)
    kerngen("build", tmp_path / "lone" / "layer.kern", "--out", "made")
    assert files(Path("made")) == made


@pytest.mark.parametrize(
    ("path", "old", "new", "rebuilt"),
    [
        ("shared/base.kern", "0.5", "0.125", {"layer", "shared/base", "shared/math"}),
        ("tuned.kern", "m == 1", "m == 2", {"layer", "tuned"}),
        *(
            pytest.param(*change, marks=pytest.mark.nightly)
            for change in (
                ("shared/math.kern", "0.25", "0.75", {"layer", "shared/math"}),
                ("layer.kern", "8.0", "9.0", {"layer", "tuned"}),
                ("other.kern", "k *", "2.0 * k *", {"other"}),
            )
        ),
    ],
)
def test_a_change_rebuilds_what_depends_on_it(
    kerngen: Run,
    compiled: list[str],
    path: str,
    old: str,
    new: str,
    rebuilt: set[str],
) -> None:
    edit(SOURCE / "tuned.kern", TUNED)
    edit(SOURCE / "other.kern", f'use "layer.kern";\n{SCALE}')
    if path in {"layer.kern", "shared/base.kern", "shared/math.kern"}:
        rebuilt = {*rebuilt, "other", "tuned"}
    kerngen("build")
    before = times(OUT)
    compiled.clear()
    text = (SOURCE / path).read_text("utf-8")
    assert old in text
    edit(SOURCE / path, text.replace(old, new))
    assert "stale" in kerngen("build", "--check", code=1).output
    compiled.clear()
    kerngen("build")
    assert set(compiled) == {f"dsl/{name}.kern" for name in rebuilt}
    after = times(OUT)
    changed = {name for name in after if after[name] != before.get(name)}
    assert {f"{name}.py" for name in rebuilt} == {
        name for name in changed if name.endswith(".py")
    }
    assert kerngen("build", "--check").output.endswith("is up to date.\n")
    compiled.clear()
    kerngen("build")
    assert compiled == []


def test_a_tuned_file_comes_and_goes(
    kerngen: Run, compiled: list[str], load: Load
) -> None:
    kerngen("build")
    plain = files(OUT)
    before = labels(load("layer"), "layer")
    assert not [label for label in before if "generic" in label]
    edit(SOURCE / "tuned.kern", TUNED)
    compiled.clear()
    kerngen("build")
    assert compiled == ["dsl/layer.kern", "dsl/tuned.kern"]
    assert labels(load("layer"), "layer")[0] == "layer.generic"
    (SOURCE / "tuned.kern").unlink()
    kerngen("build")
    assert files(OUT) == plain


def test_schedules_of_other_files_come_first_and_by_path(kerngen: Run) -> None:
    edit(SOURCE / "layer.kern", f"{LAYER}schedule layer when m == 9 {{ generic }}\n")
    for path, up, size in [("z", "", 1), ("b/c", "../", 2), ("b", "", 3), ("a", "", 4)]:
        edit(
            SOURCE / f"{path}.kern",
            f'use "{up}layer.kern";\nschedule layer when m == {size} {{ generic }}\n',
        )
    shown = kerngen("show", "layer").output
    cases = " or ".join(f"m == {size}" for size in (4, 2, 3, 1, 9))
    assert f"    generic | when {cases} | " in shown


def test_show_says_which_file_asked_for_a_schedule(kerngen: Run) -> None:
    edit(SOURCE / "layer.kern", f"{LAYER}schedule layer when m == 9 {{ generic }}\n")
    edit(SOURCE / "tuned.kern", TUNED)
    shown = kerngen("show", "layer").output
    assert "  1. generic  (asked for in dsl/tuned.kern)\n" in shown
    assert "  2. generic  (asked for)\n" in shown
    assert "    generic | when m == 1 or m == 9 | " in shown


def test_a_pattern_schedules_kernels_of_other_files(kerngen: Run) -> None:
    kerngen("build")
    edit(SOURCE / "tuned.kern", TUNED.replace("schedule layer", "schedule l*r"))
    kerngen("build", "--check", code=1)  # what is there is for another schedule
    kerngen("build")
    shown = kerngen("show", "layer").output
    assert "  1. generic  (asked for in dsl/tuned.kern)\n" in shown
    assert "    generic | when m == 1 | " in shown


@pytest.mark.parametrize("arguments", [("dsl/tuned.kern",), ("dsl/layer.kern",), ()])
def test_check_finds_a_schedule_that_fits_no_stage(
    kerngen: Run, arguments: tuple[str, ...]
) -> None:
    edit(SOURCE / "tuned.kern", TUNED.replace("generic", "map"))
    output = kerngen("check", *arguments, code=1).output
    assert "error[KG0751]: Strategy 'map' fits no stage of 'layer'." in output
    assert "--> dsl/tuned.kern:2:30" in output
    assert "\n1 error\n" in output


def test_the_page_on_files_is_true(kerngen: Run) -> None:
    page = (ROOT / "docs" / "files.md").read_text("utf-8")
    blocks = re.findall(r"```rust[^\n]*\n// (\S+)\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in blocks] == [
        "activations.kern",
        "gates.kern",
        "tuned.kern",
    ]
    for name, text in blocks:
        edit(SOURCE / name, text)
    kerngen("build")
    shown = kerngen("show", "gate").output
    assert "1. generic  (asked for in dsl/tuned.kern)" in shown
    assert "generic | when m * n < 1000 | " in shown


def test_one_files_build_knows_the_tuned_files_of_the_project(kerngen: Run) -> None:
    edit(SOURCE / "tuned.kern", TUNED)
    kerngen("build")
    before = times(OUT)
    (OUT / "layer.py").unlink()
    kerngen("build", "dsl/layer.kern")
    after = times(OUT)
    assert {name for name in after if after[name] != before[name]} == {"layer.py"}
    assert kerngen("build", "--check").output.endswith("is up to date.\n")


def test_faults_of_a_used_file_are_shown_where_they_are(kerngen: Run) -> None:
    edit(SOURCE / "shared" / "base.kern", BASE.replace("PART * x", "PARD * x"))
    alone = kerngen("check", "dsl/layer.kern", code=1).output
    assert "--> dsl/shared/base.kern:2:26" in alone
    assert "\n1 error\n" in alone
    assert kerngen("check", code=1).output == alone
    assert kerngen("build", code=1).stderr == alone
    assert kerngen("show", "layer", code=1).stderr == alone


def test_a_tuned_file_must_be_readable(kerngen: Run) -> None:
    edit(SOURCE / "notes.kern", "")
    (SOURCE / "notes.kern").write_bytes(b"// caf\xe9\n")
    kerngen("check", "dsl/layer.kern")
    edit(SOURCE / "tuned.kern", TUNED)
    (SOURCE / "tuned.kern").write_bytes(TUNED.encode() + b"// caf\xe9\n")
    output = kerngen("check", "dsl/layer.kern", code=1).output
    assert "--> dsl/tuned.kern:3:7" in output
    assert "\n1 error\n" in output


def test_missing_files_and_circles_are_reported(kerngen: Run) -> None:
    edit(SOURCE / "shared" / "base.kern", f'use "math.kern";\n{BASE}')
    edit(SOURCE / "other.kern", 'use "layr.kern";\nuse "../x.kern";\n')
    output = kerngen("build", code=1).stderr
    assert output.count("error[KG0007]") == 1
    assert "'dsl/shared/base.kern' uses 'dsl/shared/math.kern' uses 'dsl" in output
    assert "error[KG0003]: There is no file 'layr.kern'." in output
    assert "Did you mean 'layer.kern'?" in output
    assert "error[KG0005]: '../x.kern' is outside of the source folder 'dsl'." in output
    assert "\n3 errors\n" in output
