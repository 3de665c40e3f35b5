"""Derived kernels as text: what they are, and that their text compiles to the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kerngen.format.form import formatted
from kerngen.gradient import derive, kernel_text
from kerngen.ir.dump import dump_kernel
from kerngen.ir.nodes import DimValue, Expr, Kernel, Role
from kerngen.ir.verify import verify_module
from kerngen.ir.walk import map_children
from kerngen.source.text import Source
from tests.budget import sampled
from tests.compile import checked
from tests.gradient.cases import case_of, kernels_of, path_of
from tests.gradient.differences import kernel_of

TEXTS = [
    ("softmax", "softmax", "x", "y"),
    ("softmax", "log_softmax", "x", "y"),
    ("norm", "layernorm", "x gain bias", ""),
    ("norm", "rmsnorm", "x gain", ""),
    ("attention", "attention", "q k v", ""),
    ("attention", "causal_attention", "q", ""),
    ("attention", "rotary_interleaved", "x", ""),
    ("conv", "conv2d", "x k", ""),
    ("matmul", "matmul_nn_bias_gelu", "a b bias", ""),
    ("loss", "mean_cross_entropy", "logits", ""),
    ("image", "max_pool2d", "x", "y"),
    ("indexing", "embedding", "table", ""),
    ("programs", "pixel_shuffle", "x", ""),
    ("programs", "prefixes", "x", ""),
]


def test_texts_of_some(golden: Callable[[Path, str], None]) -> None:
    """Simplification must not rot: each is what a person would write, or nearly so."""
    texts: list[str] = []
    for file, name, by, given in TEXTS:
        case = replace(
            case_of(file, name), by=tuple(by.split()), given=tuple(given.split())
        )
        texts.append(kernel_text(replace(case.derived(), doc="")))
    text = formatted(Source("derived.kern", "\n".join(texts)))
    golden(Path(__file__).parent / "derived.kern", text)


FILES = [
    "programs",
    "vectors",
    "softmax",
    "norm",
    "attention",
    "conv",
    "image",
    "layout",
    "loss",
]


@pytest.mark.parametrize("file", sampled(FILES, 4))
def test_texts_compile_to_the_same(file: str) -> None:
    """Every derived kernel is one that its text, put beside the forward one, gives."""
    derived = [case_of(*each).derived() for each in kernels_of(file)]
    path = path_of(file)
    module = checked("\n".join([path.read_text("utf-8"), *map(kernel_text, derived)]))
    assert verify_module(replace(module, kernels=tuple(derived))) == []
    for kernel in derived:
        assert _plain(kernel) == _plain(kernel_of(module, kernel.name))


def _plain(kernel: Kernel) -> str:
    """Return a kernel's dump with computed lengths by value, whatever they are called."""
    lengths = {dim.name: dim.value for dim in kernel.derived}

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, DimValue) and expr.name in lengths:
            return visit(lengths[expr.name])
        return map_children(expr, visit)

    body = tuple(replace(s, value=visit(s.value)) for s in kernel.body)
    text = dump_kernel(replace(kernel, body=body, schedules=()))
    computed = re.findall(r"derived (\w+) = (.*)", text)
    text = re.sub(r"    derived .*\n", "", text)
    for name, value in computed:
        text = re.sub(rf"\b{name}\b", value, text)
    return text


def test_equal_values_are_one_let() -> None:
    """Of calls that two gradients repeat, of sums, and of what the kernel names itself."""
    module = checked("""
        kernel f(x: f32[m, n], z: f32[m, n], mask: f32[m, n]) -> y: f32[m, n], u: f32[m] {
            let r[i, j] = sqrt(sum[p] x[i, p] * x[i, p]) * z[i, j];
            let h[p] = log(x[0, p]);
            let twice[p] = 2.0 * h[p];
            y[i, j] = x[i, j] / sqrt(sum[p] x[i, p] * x[i, p]) + r[i, j] * exp(x[i, j] * z[i, j]);
            u[i] = sum[p when mask[i, p] > 0.0] (twice[p] - h[p]);
        }
        """)
    derived = derive(module.kernels[0], name="g", by=("x", "z"))
    values = [s.text.split(" = ")[1] for s in derived.body if s.target.role is Role.LET]
    assert len(values) == len({*values})
