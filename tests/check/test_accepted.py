"""Right programs with the typed IR that they become: `accept/<name>.kern` and `.ir`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.check import check
from kerngen.ir.dump import dump_module
from kerngen.ir.nodes import Kernel, Module
from kerngen.ir.verify import verify_module
from kerngen.source.reading import read_source
from kerngen.syntax.parser import parse

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tests" / "cases" / "accept"
CASES = sorted(FOLDER.glob("*.kern"))
STANDARD = sorted((ROOT / "dsl").glob("*.kern"))


def module_of(case: Path) -> Module:
    source = read_source(case, case.name)
    return check(parse(source), source)


def kernel_of(name: str) -> Kernel:
    (kernel,) = module_of(FOLDER / f"{name}.kern").kernels
    return kernel


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_typed_ir(case: Path, golden: Callable[[Path, str], None]) -> None:
    golden(case.with_suffix(".ir"), dump_module(module_of(case)))


def test_no_golden_is_left_over() -> None:
    assert {f.stem for f in FOLDER.glob("*.ir")} == {case.stem for case in CASES}


@pytest.mark.parametrize("case", [*CASES, *STANDARD], ids=lambda case: case.stem)
def test_typed_ir_is_valid(case: Path) -> None:
    assert verify_module(module_of(case)) == []


def test_quotes_the_user_on_one_line() -> None:
    kernel = kernel_of("documented")
    assert (
        kernel.signature
        == "kernel documented(x: f32[n], alpha: f32 = 2.0) -> y: f32[n]"
    )
    assert kernel.body[0].text == "y[i] = alpha * x[i];"
    assert kernel.doc == "The kernel,\nin two lines."
    assert [tensor.doc for tensor in kernel.tensors] == ["The input.", ""]
    assert kernel.parameters[0].doc == "The factor."


def test_keeps_the_order_of_the_parameters() -> None:
    kernel = kernel_of("hosts")
    assert kernel.order == ("x", "step", "k", "beta")


def test_dims_are_in_order_of_first_appearance() -> None:
    assert kernel_of("gathers").dims == ("m", "n", "v", "k")
