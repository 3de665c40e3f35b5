"""The printed text means what the tree means, says a WGSL compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kerngen.runtime as gpu
from kerngen.plan.size import ONE
from kerngen.plan.tree import Binding, Case, Choice, Dispatch
from kerngen.runtime import u32
from kerngen.runtime.calls import kernel as k
from kerngen.runtime.struct import UniformStruct
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t
from kerngen.shader.printer import expression, print_module
from tests.budget import examples

INPUTS = (3, 5, 0, 7, 4294967295, 12, 31, 2)
MASK = 0xFFFFFFFF

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b else a,
    "%": lambda a, b: a % b if b else 0,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << (b & 31),
    ">>": lambda a, b: a >> (b & 31),
}

leaves = st.integers(0, len(INPUTS) - 1).map(lambda i: t.Ident("x")[i])


def _select(a: t.Expr, b: t.Expr, c: t.Expr, d: t.Expr) -> t.Expr:
    return t.call("select", a, b, t.Binary("<", c, d))


def deeper(inner: st.SearchStrategy[t.Expr]) -> st.SearchStrategy[t.Expr]:
    """Trees of one more level."""
    binary = st.builds(t.Binary, st.sampled_from(sorted(OPERATORS)), inner, inner)
    chosen = st.builds(_select, inner, inner, inner, inner)
    return binary | st.builds(t.Unary, st.just("~"), inner) | chosen


expressions = st.recursive(leaves, deeper, max_leaves=12)


def evaluate(expr: t.Expr) -> int:
    """Return what a tree means, as a u32."""
    match expr:
        case t.Element(_, t.Literal(text)):
            return INPUTS[int(text[:-1])]
        case t.Unary(_, operand):
            return ~evaluate(operand) & MASK
        case t.Binary(op, left, right):
            return OPERATORS[op](evaluate(left), evaluate(right)) & MASK
        case t.Call(_, (otherwise, then, t.Binary("<", left, right))):
            return evaluate(then if evaluate(left) < evaluate(right) else otherwise)
        case _:
            raise AssertionError(expr)


def _no_hosts(*_: object) -> tuple[float, ...]:
    return ()


def run(ctx: gpu.Context, folder: Path, trees: list[t.Expr]) -> list[int]:
    """Let the adapter compute the printed text of each tree."""
    out = t.Ident("y")
    body = tuple(t.Assign(out[i], tree) for i, tree in enumerate(trees))
    module = wgsl.Module(
        (
            wgsl.Buffer(1, "storage, read", "x", "array<u32>"),
            wgsl.Buffer(2, "storage, read_write", "y", "array<u32>"),
            wgsl.EntryPoint(1, (), body),
        ),
    )
    (folder / "expressions.wgsl").write_text(print_module(module), encoding="utf-8")
    bindings = (Binding("x"), Binding("y", writes=True))
    dispatch = Dispatch("expressions", bindings, ONE, uses_uniform=False)
    kernel = k.Kernel(
        name="expressions",
        origin="a test",
        folder=folder,
        dims=("n",),
        tensors=(
            k.TensorSpec("x", u32, ("n",), "read"),
            k.TensorSpec("y", u32, (len(trees),), "write"),
        ),
        scalars=(),
        uniform=UniformStruct,
        hosts=_no_hosts,
        read_body=lambda: (Choice((Case("generic", (dispatch,)),), ("y",)),),
        reference=_no_hosts,
    )
    (y,) = kernel.launch(ctx, (ctx.vector(np.array(INPUTS), u32),), (), (None,))
    return [int(value) for value in y.numpy()]


@settings(max_examples=examples(25), deadline=None)
@given(trees=st.lists(expressions, min_size=20, max_size=40))
def test_printed_expressions_mean_what_the_tree_means(
    ctx: gpu.Context,
    tmp_path_factory: pytest.TempPathFactory,
    trees: list[t.Expr],
) -> None:
    got = run(ctx, tmp_path_factory.mktemp("wgsl"), trees)
    assert got == [evaluate(tree) for tree in trees]


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (t.Ident("a") + t.Ident("b") * 3, "a + b * 3u"),
        ((t.Ident("a") + t.Ident("b")) * 3, "(a + b) * 3u"),
        (t.Ident("a") - (t.Ident("b") - t.Ident("c")), "a - (b - c)"),
        (t.Ident("a") - t.Ident("b") - t.Ident("c"), "a - b - c"),
        (t.Ident("a") // 4, "a >> 2u"),
        (t.Ident("a") // 4 // 2, "a >> 3u"),
        (t.Ident("a") % 8, "a & 7u"),
        (t.Ident("a") % 32 % 8, "a & 7u"),
        (t.Ident("a") % 8 % 32, "a & 7u"),
        (t.Ident("a") // 6, "a / 6u"),
        (t.Unary("-", t.Literal("-1.0")), "-(-1.0)"),
        (t.Ident("a") * 1 + t.Ident("b") * 0 + 0, "a"),
    ],
)
def test_addresses_are_printed_in_their_simplest_form(tree: t.Expr, text: str) -> None:
    assert expression(tree) == text


def test_sizes_are_folded_without_changing_what_they_mean() -> None:
    for value in (0, 1, 5, 1000, 4294967295):
        x = t.u32(value)
        for divisor in (1, 2, 3, 64):
            assert t.as_int(x // divisor) == value // divisor
            assert t.as_int(x % divisor) == value % divisor
