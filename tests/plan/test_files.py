"""Plan files: read back whole, read by another reader, and refused where damaged."""

from __future__ import annotations

import random
import re
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest

from kerngen.compiler import compile_text
from kerngen.plan.read import PlanSyntaxError, PlanVersionError, read_plan
from kerngen.plan.write import checksum_line, plan_text
from kerngen.runtime import AbiError, Context, ShapeError
from kerngen.runtime.choices import all_dims, kernel_of
from kerngen.runtime.generated import ModuleFiles
from kerngen_kernels import conv, matmul, softmax
from tests.plan import independent
from tests.runtime.kernels import internals

ROOT = Path(__file__).parents[2] / "generated" / "kerngen_kernels" / "wgsl"
PLANS = sorted(ROOT.glob("*/*.plan"))
SOURCE = """
    kernel many(x: f32[m, n], step: u32, scale: f32, off: vec3i) -> y: f32[m, step], z: f32[n / 2] {
        host wide = i32(f32(n) * 0.5 + scale);
        let top[i] = max[j] x[i, j];
        y[i, q] = top[i];
        z[j] = f32(off.y) + sum[r < wide / 2] x[0, 0];
    }
    schedule many when n % 4 == 0 and not (step > 2 or adapter.f16) { generic }
"""


def body_of(text: str) -> str:
    return text.rpartition("\nend ")[0]


def signed(body: str) -> str:
    """Return a plan's text with the hash that it must have."""
    return f"{body}\n{checksum_line(body)}\n"


def sample() -> str:
    return compile_text(SOURCE, "s.kern").files["wgsl/s/s.plan"].decode()


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_plans_are_read_back(file: Path) -> None:
    text = file.read_text("utf-8")
    assert plan_text(read_plan(text)) == text


def test_the_standard_kernels_take_few_lines() -> None:
    assert sum(file.read_text("utf-8").count("\n") for file in PLANS) <= 4500


@pytest.mark.parametrize("module", [softmax, matmul, conv], ids=lambda m: m.__name__)
def test_another_reader_chooses_alike(ctx: Context, module: ModuleType) -> None:
    name = module.__name__.rpartition(".")[2]
    plans = independent.read((ROOT / name / f"{name}.plan").read_text("utf-8"))
    assert plans
    rng = random.Random(name)
    info = internals(ctx)._planner._capabilities.info
    for kernel, plan in plans.items():
        function = getattr(module, kernel)
        names = (*kernel_of(function).dims, *kernel_of(function).guard_scalars)
        for _ in range(20):
            dims = {d: rng.choice((1, 4, 7, 63, 64, 1024, 70000)) for d in names}
            try:
                expected = ctx.choices(function, **dims)
            except ShapeError:
                continue  # a length is negative
            lengths = all_dims(kernel_of(function), dims)
            found = independent.choices(plan, dims, asdict(info))
            assert [(c.stage, c.strategy, c.shaders) for c in expected] == found
            assert {n: v for n, v in lengths.items() if n not in dims} == (
                independent.lengths(plan, dims)
            )


def test_scalars_that_decide_are_listed() -> None:
    (kernel,) = read_plan(sample()).kernels
    assert kernel.guards == ("step", "scale")
    assert [dim.text for dim in kernel.derived] == ["step", "n / 2", "wide / 2"]


# ---- damage

DAMAGE = {
    "kerngen plan 1": "kerngen plan 2",
    "dims m, n": "dims m n",
    "read x f32[m, n]": "read x f32[m, q]",
    "write y": "writes y",
    "scalar step u32": "",
    "guards step": "guards 7",
    "when n % 4": "when n ** 4",
    "n % 4 == 0 and": "n and",
    "groups ceil_div(m * step": "groups ceiling(m * step",
    "run many": "runs many",
    "(x, ": "(ghost, ",
    "with LANES = 4,": "with LANES 4,",
    "with LANES = 8,": "with LANES = -8,",
    "| with LANES = 32,": "| with | with LANES = 32,",
    "invocations 64": "invocations -64",
    "  stage top": " stage top",
    "      - | run": "        - | run",
    "64)": "9007199254740993)",
    "| bytes 0": "| bytes 0 | covers 9",
    " / 2 |": " / evil() |",
}


@pytest.mark.parametrize("old", DAMAGE)
def test_a_damaged_plan_is_refused(old: str) -> None:
    """Each is refused for what it says, not for its hash alone."""
    body = body_of(sample())
    assert old in body
    damaged = signed(body.replace(old, DAMAGE[old], 1))
    with pytest.raises((PlanSyntaxError, PlanVersionError)) as caught:
        read_plan(damaged)
    if isinstance(caught.value, PlanSyntaxError):
        assert 1 <= caught.value.line <= damaged.count("\n")


def test_no_edit_is_read() -> None:
    """Whatever is cut off or changed: the hash tells, and reading ends in one error."""
    text, rng = sample(), random.Random(0)
    for _ in range(300):
        at = rng.randrange(len(text))
        cut, flipped = text[:at], chr(ord(text[at]) ^ 1)
        for damaged in (cut, cut + flipped + text[at + 1 :]):
            with pytest.raises((PlanSyntaxError, PlanVersionError)):
                read_plan(damaged)


def test_signed_edits_end_in_one_error_or_a_plan() -> None:
    words = re.split(r"(\W)", body_of(sample()))
    rng = random.Random(1)
    for _ in range(500):
        edited = list(words)
        edited[rng.randrange(len(edited))] = rng.choice(
            ["", "(", "n", "99", "*", "|", "\n"]
        )
        try:
            read_plan(signed("".join(edited)))
        except (PlanSyntaxError, PlanVersionError):
            continue


def test_an_import_says_which_plan_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "wgsl" / "s"
    folder.mkdir(parents=True)
    plan = folder / "s.plan"

    def refused() -> str:
        with pytest.raises(AbiError) as caught:
            ModuleFiles.of("my.s", str(tmp_path / "s.py"))
        return str(caught.value)

    assert "can't be read" in refused()
    plan.write_text(sample().replace("groups", "group", 1), "utf-8")
    assert "is damaged, line" in refused()
    plan.write_text("kerngen plan 7 | x\n", "utf-8")
    assert "another version: expected 'kerngen plan 1'" in refused()
    assert str(plan) in refused()
    assert refused().endswith("Run 'kerngen build' again.")


def test_a_module_of_another_plan_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "wgsl" / "s"
    folder.mkdir(parents=True)
    (folder / "s.plan").write_text(sample(), "utf-8")
    files = ModuleFiles.of("my.s", str(tmp_path / "s.py"))
    with pytest.raises(AbiError, match="no kernel 'other'"):
        files.kernel("other", reference=print)
