"""Right programs with the typed IR that they become: `accept/<name>.kern` and `.ir`.

One of several files is a folder, in which `main.kern` is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.ir.dump import dump_module
from kerngen.ir.nodes import Kernel
from kerngen.ir.verify import verify_module

from .libraries import cases_in, module_of, name_of

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tests" / "cases" / "accept"
CASES = cases_in(FOLDER)
STANDARD = sorted((ROOT / "dsl").glob("*.kern"))


def kernel_of(name: str) -> Kernel:
    (kernel,) = module_of(FOLDER / f"{name}.kern").kernels
    return kernel


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_typed_ir(case: Path, golden: Callable[[Path, str], None]) -> None:
    golden(case.with_suffix(".ir"), dump_module(module_of(case)))


def test_no_golden_is_left_over() -> None:
    goldens = set(FOLDER.rglob("*.ir"))
    assert goldens == {case.with_suffix(".ir") for case in CASES}


@pytest.mark.parametrize("case", [*CASES, *STANDARD], ids=name_of)
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
