"""Plan files: read back whole, read by another reader, and refused where damaged."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kerngen.compiler import compile_text
from kerngen.plan.lines import PlanSyntaxError, checksum_line
from kerngen.plan.read import PlanVersionError, read_plan
from kerngen.plan.size import Guard, Not, Symbol, compare
from kerngen.plan.text import guard_text
from kerngen.plan.tree import Case, Choice, choices_in
from kerngen.plan.write import PlanValueError, plan_text
from kerngen.runtime import AbiError, Context, Error, ShapeError
from kerngen.runtime.calls.choices import all_dims, kernel_of
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


@cache
def planned(text: str) -> str:
    """Return the plan file of a source, compiled once for all tests."""
    return compile_text(text, "s.kern").files["wgsl/s/s.plan"].decode()


def sample() -> str:
    return planned(SOURCE)


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_plans_are_read_back(file: Path) -> None:
    text = file.read_text("utf-8")
    assert plan_text(read_plan(text)) == text


def test_the_standard_kernels_take_few_lines() -> None:
    text = "".join(file.read_text("utf-8") for file in PLANS)
    kernels = len(re.findall(r"^kernel ", text, re.MULTILINE))
    assert round(text.count("\n") / kernels) <= 39


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


DERIVED = """
    kernel f(x: f32[m, n], lambda: f32[n], a: f32) -> y: f32[m], z: f32[] {
        let t[i] = exp(sum[j] x[i, j] * lambda[j]);
        y[i] = a * t[i];
        z = sum[i] x[i, 0];
    }
    kernel g = gradient of f by x, lambda, a given t;
    kernel h(x: f32[m, n]) -> y: f32[m] { y[i] = sum[j] x[i, j]; }
    kernel k = gradient of h by x;
"""


def test_what_a_kernel_is_the_gradient_of() -> None:
    """Names of both kernels are Python's."""
    text = planned(DERIVED)
    assert plan_text(read_plan(text)) == text
    found = {name: kernel.gradient for name, kernel in independent.read(text).items()}
    assert found["f"] == found["h"] == found["f_kept"] == []
    assert found["g"] == [
        "f",
        "by x: dx",
        "by lambda_: dlambda",
        "by a: da",
        "from y: dy",
        "from z: dz",
        "given t",
    ]
    assert found["k"] == ["h", "by x: dx", "from y: dy", "length n: n_len"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("by x: dx", "by x dx"),
        ("by x: dx", "by x: dy"),
        ("by x: dx | from", "from"),
        ("from y: dy", "from y: dx"),
        ("from y: dy", "given q"),
        ("from y: dy", "from y: dy | argument a: q"),
        ("length n: n_len", "length n: n"),
        ("gradient h", "gradient 7"),
        ("  gradient h", "  gradient h | by x: dx\n  gradient h"),
    ],
)
def test_a_damaged_gradient_is_refused(old: str, new: str) -> None:
    body = body_of(planned(DERIVED))
    assert body.count(old) >= 1
    with pytest.raises(PlanSyntaxError) as caught:
        read_plan(signed(body.replace(old, new)))
    line = body.replace(old, new).split("\n")[caught.value.line - 1]
    assert line.startswith("  gradient ")


# ---- damage

# What is exchanged for what; the line that is refused begins with the third.
DAMAGE = [
    ("kerngen plan 6", "kerngen plan 2", ""),
    ("dims m, n", "dims m n", "  dims m n"),
    ("dims m, n", "dims m, m", "  dims m, m"),
    ("read x f32[m, n]", "read x f32[m, q]", "  read x"),
    ("write z f32[n_div_2]", "write y f32[n_div_2]", "  write y f32[n_div_2]"),
    ("write y", "writes y", "  writes y"),
    ("scalar step u32", "", "  guards step"),
    ("scalar scale", "scalar step", "  scalar step f32"),
    ("guards step", "guards 7", "  guards 7"),
    ("0 m |", "0 q |", '  range "x" 0 q'),
    ("around [n_div_2, w", "around [q, w", '  range "x" 0'),
    ("temporary top", "temporary x", "  temporary x"),
    ("when n % 4", "when n ** 4", "    generic | when n **"),
    ("n % 4 == 0 and", "n and", "    generic | when n and"),
    ("adapter.f16", "adapter.f8", "    generic | when"),
    ("groups ceil_div(m * step", "groups ceiling(m * step", "    generic | when"),
    (" | groups ceil_div(m, 128)", "", "    generic | when"),
    ("run many", "runs many", "    generic | when"),
    ("(x, ", "(ghost, ", "    generic | when"),
    (
        "finish(top*, parts)",
        "finish(top*, part)",
        "      run many.top.reduce:finish",
    ),
    ("with LANES = 4,", "with LANES 4,", "      upto32 | when"),
    ("with LANES = 8,", "with LANES = -8,", "      upto128 | when"),
    ("| with LANES = 32,", "| with | with LANES = 32,", "      upto512 | when"),
    ("with LANES = 32,", "with LANES = 32, LANES = 8,", "      upto512 | when"),
    ("scratch parts[m", "scratch x[m", "    reduce | when"),
    ("invocations 128", "invocations -128", "    generic | when"),
    ("    generic | when", "      generic | when", "      generic | when"),
    ("    generic | when", "    no name | when", "    no name | when"),
    ("  stage top", " stage top", " stage top"),
    ("  stage top", "  stage top, ", "  stage top, "),
    ("  stage y", "  stage top", "kernel many"),
    ("128)", "9007199254740993)", "    generic | when"),
    ("| invocations 128", "| invocations 128 | covers 9", "    generic | when"),
    (" / 2 |", " / evil() |", "  length n_div_2"),
    # The last case of a choice has a condition, or a choice is not whole.
    ("    map | inv", "    map | when n > 2 | inv", "  stage y"),
    ("      edge | run many.y", "      edge | when n > 2 | run many.y", "    map"),
    ("      edge | run", "      stage rest\n      edge | run", "      stage rest"),
    (
        "      edge | run",
        "      run f(x) | groups 1\n      edge | run",
        "      run f(x)",
    ),
    # Stages in a case are not the last ones of its choice; without a name, not all.
    ("    map | inv", "    - | inv", "    - | inv"),
    (
        "length % 1024, 256)",
        "length % 1024, 256)\n      stage z\n        map | run many.z(x) | groups 1",
        "    map",
    ),
]


@pytest.mark.parametrize(("old", "new", "place"), DAMAGE)
def test_a_damaged_plan_is_refused(old: str, new: str, place: str) -> None:
    """Each is refused for what its line says, not for its hash alone."""
    body = body_of(sample())
    assert old in body
    damaged = signed(body.replace(old, new, 1))
    with pytest.raises((PlanSyntaxError, PlanVersionError)) as caught:
        read_plan(damaged)
    if isinstance(caught.value, PlanSyntaxError):
        assert damaged.split("\n")[caught.value.line - 1].startswith(place)
    else:
        assert not place


@pytest.mark.parametrize(
    ("guard", "fault"),
    [
        (compare("<", Symbol("n"), 2**53 + 1), "9007199254740993 is beyond 2^53"),
        (compare("<", Symbol("adapter.f8"), 1), "'adapter.f8' is none of adapter.f16,"),
    ],
)
def test_what_no_reader_takes_is_not_written(guard: Guard, fault: str) -> None:
    plan = read_plan(sample())
    (kernel,) = plan.kernels
    only = Case("map", next(choices_in(kernel.body)).cases[0].body)
    body = (Choice((replace(only, when=guard), only), ("top",)),)
    wrong = replace(plan, kernels=(replace(kernel, body=body),))
    with pytest.raises(
        PlanValueError, match=f"the plan of 'many' .*{re.escape(fault)}"
    ):
        plan_text(wrong)
    with pytest.raises(PlanSyntaxError):
        read_plan(signed(body_of(sample()).replace("n % 4 == 0", guard_text(guard), 1)))


def test_a_plan_that_would_be_read_otherwise_is_not_written() -> None:
    """The reader folds what this condition leaves as it is: another tree comes back."""
    plan = read_plan(sample())
    (kernel,) = plan.kernels
    first, *others = kernel.body
    assert isinstance(first, Choice)
    twice = replace(first.cases[0], when=Not(Not(first.cases[0].when)))
    changed = replace(first, cases=(twice, *first.cases[1:]))
    wrong = replace(plan, kernels=(replace(kernel, body=(changed, *others)),))
    with pytest.raises(PlanValueError, match="it would be read otherwise"):
        plan_text(wrong)


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
    (folder / "f.map.wgsl").touch()
    plan = folder / "s.plan"

    def refused() -> str:
        with pytest.raises(AbiError) as caught:
            ModuleFiles.of("my.s", str(tmp_path / "s.py"))
        return str(caught.value)

    assert "can't be read" in refused()
    plan.write_text(sample().replace("groups", "group", 1), "utf-8")
    assert "is damaged, line" in refused()
    plan.write_text("kerngen plan 7 | x\n", "utf-8")
    assert "another version: expected 'kerngen plan 6'" in refused()
    assert str(plan) in refused()
    assert refused().endswith("Run 'kerngen build' again.")


def test_a_module_of_another_plan_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "wgsl" / "s"
    folder.mkdir(parents=True)
    (folder / "f.map.wgsl").touch()
    (folder / "s.plan").write_text(sample(), "utf-8")
    files = ModuleFiles.of("my.s", str(tmp_path / "s.py"))
    with pytest.raises(AbiError, match="no kernel 'other'"):
        files.kernel("other", reference=print)


def test_two_plans_of_one_kernel_are_refused() -> None:
    body = body_of(sample())
    kernel = body[body.index("kernel many") :]
    with pytest.raises(PlanSyntaxError, match="'many' is declared twice"):
        read_plan(signed(f"{body}\n{kernel}"))


def imported(files: Mapping[str, bytes], folder: Path) -> ModuleType:
    """Return a generated module, as Python's import makes one of its files."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    spec = spec_from_file_location("kernels_of_test", folder / "s.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        spec.loader.exec_module(module)
    return module


def affine(scalars: str) -> Mapping[str, bytes]:
    text = f"kernel f(x: f32[n], {scalars}) -> y: f32[n] {{ y[i] = x[i] * a + b; }}"
    return compile_text(text, "s.kern").files


def test_a_module_of_other_sources_is_refused(tmp_path: Path) -> None:
    """It would pack its scalars in an order that the shaders don't read them in."""
    one, other = affine("a: f32, b: f32"), affine("b: f32, a: f32")
    with pytest.raises(AbiError, match=r"'kernels_of_test' .* sources differ"):
        imported({**other, "s.py": one["s.py"]}, tmp_path)


def test_a_negative_number_of_workgroups_is_refused(
    ctx: Context, tmp_path: Path
) -> None:
    files = affine("a: f32, b: f32")
    plan = body_of(files["wgsl/s/s.plan"].decode()).replace("groups ", "groups -2 + ")
    module = imported({**files, "wgsl/s/s.plan": signed(plan).encode()}, tmp_path)
    with pytest.raises(
        Error, match=r"s.kern:1\): its plan in .* asks for -1 "
    ) as caught:
        ctx.choices(module.f, n=5)
    assert str(tmp_path) in str(caught.value)


def test_steps_are_read_at_the_first_call(ctx: Context, tmp_path: Path) -> None:
    """An import reads the facts alone; the call names the plan and its line."""
    files = affine("a: f32, b: f32")
    plan = body_of(files["wgsl/s/s.plan"].decode()).replace("groups ", "groups 2 ^ ")
    plan = plan.replace("  stage y", "  let s1 = 3\n  stage y")
    module = imported({**files, "wgsl/s/s.plan": signed(plan).encode()}, tmp_path)
    x = ctx.tensor(np.zeros(5, np.float32))
    place = re.escape(str(tmp_path / "wgsl" / "s" / "s.plan"))
    for _ in range(2):
        with pytest.raises(
            AbiError, match=rf"{place} is damaged, line \d+: '2 \^ .*kerngen build"
        ):
            module.f(x, a=1.0, b=2.0)


# ---- forms

MAPS = [
    "kernel f0(x: f32[n]) -> y: f32[n] { y[i] = x[i] + 1.0; }",
    "kernel f1(a: f32[m, k]) -> b: f32[m, k] { b[i, j] = 2.0 * a[i, j]; }",
    "kernel f2(x: f32[n]) -> y: f32[n] { y[i] = exp(x[i]); }",
    "kernel f3(x: f32[n, 3]) -> y: f32[n, 3] { y[i, j] = x[i, j] * x[i, j]; }",
]


def formed() -> str:
    return planned("\n".join(MAPS))


def test_lines_that_recur_are_a_form() -> None:
    """What is read is the plan of each kernel compiled alone, whose file has no form."""
    text = formed()
    assert text.count("\nform map | ") == 1
    assert len(re.findall(r"^  use map \| \w \| f\d\.map \| ", text, re.MULTILINE)) == 4
    assert plan_text(read_plan(text)) == text
    alone = [planned(source) for source in MAPS]
    assert "form" not in "".join(alone)
    bodies = [read_plan(each).kernels[0].body for each in alone]
    assert [kernel.body for kernel in read_plan(text).kernels] == bodies


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("form map | $", "form no map | $", "form no map"),
        ("form map | $", "form map | ", "form map"),
        ("form map | $", "form map | $q | $", "form map"),
        ("form map | $", "form map | $q, $", "  use map | y | f0"),
        ("  stage $y", "  use map | $y", "  use map | $y"),
        ("  use map | y | f0", "  use maps | y | f0", "  use maps"),
        ("| m * k", "| m *", "  use map | b | f1"),
        ("| m * k", "| m * q", "  use map | b | f1"),
        ("| m * k\n", "| m * k\n      edge | groups 1\n", "      edge | groups 1"),
        ("| f1.map | a |", "| f1.map | ghost |", "      aligned | when $n"),
        ("run $map($", "run $other($", "      aligned | when $n"),
        ("aligned | when $n", "aligned | when n", "      aligned | when n"),
        ("\nkernel f0", "\nform map | $x\n  stage $x\n\nkernel f0", "form map"),
        ("\nkernel f0", "\nform of | $x\n  let $x = 3\n\nkernel f0", "  let $x = 3"),
    ],
)
def test_a_damaged_form_is_refused(old: str, new: str, place: str) -> None:
    body = body_of(formed())
    assert old in body
    damaged = signed(body.replace(old, new, 1))
    with pytest.raises(PlanSyntaxError) as caught:
        read_plan(damaged)
    assert damaged.split("\n")[caught.value.line - 1].startswith(place)


def test_an_error_in_a_form_names_the_line_that_uses_it() -> None:
    body = body_of(formed()).replace("| f1.map | a |", "| f1.map | ghost |", 1)
    number = body.split("\n").index("  use map | b | f1.map | ghost | m * k") + 1
    with pytest.raises(PlanSyntaxError, match=f"'ghost' .*, where line {number} uses"):
        read_plan(signed(body))


def test_forms_of_endless_lines_are_refused() -> None:
    body = body_of(formed())
    twice = "\n".join("  use f{0} | $x" for _ in range(2))
    forms = [f"form f{n + 1} | $x\n{twice.format(n)}\n" for n in range(20)]
    first = "form f0 | $x\n  run f0.map($x) | groups 1\n"
    inner = "\n".join([first, *forms, "kernel f0"])
    body = body.replace("kernel f0", inner, 1).replace("use map |", "use f20 |", 1)
    body = re.sub(r"(use f20 \| \w+).*", r"\1", body)
    with pytest.raises(PlanSyntaxError, match="more than 10000 lines"):
        read_plan(signed(body))


# ---- repetitions

REPEATED = """
    kernel spread(x: f32[n], steps: u32) -> y: f32[n] {
        let h[t < steps + 1, i] = if t > 0 {
            0.5 * (h[t - 1, i] + h[t - 1, mod(i + 1, n)])
        } else {
            x[i]
        };
        y[i] = h[i32(steps), i];
    }
"""


def test_a_repetition_is_read_back() -> None:
    text = planned(REPEATED)
    assert "        repeat max(steps_plus_1 - 1, 0)\n          run spread" in text
    assert plan_text(read_plan(text)) == text


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("repeat max(", "repeat most(", "        repeat most("),
        ("- 1, 0)\n", "- 1, 0) | groups 1\n", "        repeat max("),
        ("          run spread", "        run spread", "        repeat max("),
        ("          run spread", "            run spread", "            run spread"),
        ("repeat max(", "again max(", "        again max("),
    ],
)
def test_a_damaged_repetition_is_refused(old: str, new: str, line: str) -> None:
    body = body_of(planned(REPEATED))
    assert body.count(old) >= 1
    with pytest.raises(PlanSyntaxError) as caught:
        read_plan(signed(body.replace(old, new)))
    refused = body.replace(old, new).split("\n")[caught.value.line - 1]
    assert refused.startswith(line)
