"""Operators bind as the language says, loosest first, and reductions as far as it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .levels import LEVELS
from .parsing import codes_of, parse_expression
from .programs import write_expression

LEVEL_OF = {op: level for level, ops in enumerate(LEVELS) for op in ops}
COMPARISON = LEVEL_OF["<"]


def group(operands: list[str], ops: list[str]) -> str:
    """Parenthesise by splitting at the last of the loosest operators."""
    if not ops:
        return operands[0]
    loosest = min(LEVEL_OF[op] for op in ops)
    at = max(i for i, op in enumerate(ops) if LEVEL_OF[op] == loosest)
    left = group(operands[: at + 1], ops[:at])
    right = group(operands[at + 1 :], ops[at + 1 :])
    return f"(({left}) {ops[at]} ({right}))"


def is_chained(ops: list[str]) -> bool:
    """Whether two comparisons have no looser operator between them."""
    open_comparison = False
    for op in ops:
        if LEVEL_OF[op] < COMPARISON:
            open_comparison = False
        elif LEVEL_OF[op] == COMPARISON:
            if open_comparison:
                return True
            open_comparison = True
    return False


@given(st.lists(st.sampled_from(sorted(LEVEL_OF)), max_size=8))
def test_chains_of_operators(ops: list[str]) -> None:
    operands = [f"x{i}" for i in range(len(ops) + 1)]
    pairs = zip(operands, [*ops, ""], strict=True)
    text = " ".join(f"{operand} {op}" for operand, op in pairs)
    if is_chained(ops):
        assert codes_of(f"kernel k() {{ host h = {text}; }}") == ["KG0108"]
    else:
        assert parse_expression(text) == parse_expression(group(operands, ops))


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        # Unary operators
        ("not a == b", "not (a == b)"),
        ("not a and b", "(not a) and b"),
        ("not not a", "not (not a)"),
        ("-a * b", "(-a) * b"),
        ("-a.x[i]", "-((a.x)[i])"),
        ("a - -b", "a - (-b)"),
        ("~a & b", "(~a) & b"),
        ("-~-a", "-(~(-a))"),
        # Reductions take factors, and no more
        ("sum[j] a * b", "sum[j] (a * b)"),
        ("sum[j] a / b", "(sum[j] a) / b"),
        ("sum[j] a % b", "(sum[j] a) % b"),
        ("sum[j] a + b", "(sum[j] a) + b"),
        ("sum[j] a == b", "(sum[j] a) == b"),
        ("sum[j] a * b / c", "(sum[j] (a * b)) / c"),
        ("sum[j] a * b / c * d", "((sum[j] (a * b)) / c) * d"),
        ("a * sum[j] b * c", "a * (sum[j] (b * c))"),
        ("a / sum[j] b * c", "a / (sum[j] (b * c))"),
        ("a / b * sum[j] c", "(a / b) * (sum[j] c)"),
        ("alpha * sum[p] a * b + bias", "(alpha * (sum[p] (a * b))) + bias"),
        ("sum[j] a / n * b", "((sum[j] a) / n) * b"),
        # ... and a further reduction
        ("sum[i] sum[j] a * b", "sum[i] (sum[j] (a * b))"),
        ("sum[i] a * sum[j] b * c", "sum[i] (a * (sum[j] (b * c)))"),
        ("sum[i] a * max[j] b / c", "(sum[i] (a * (max[j] b))) / c"),
        ("sum[i] a / sum[j] b", "(sum[i] a) / (sum[j] b)"),
        # A sign before a reduction covers all of it
        ("-sum[j] a * b", "-(sum[j] (a * b))"),
        ("-sum[j] a / b", "(-(sum[j] a)) / b"),
        ("a * -sum[j] b * c", "a * (-(sum[j] (b * c)))"),
        ("sum[j] -a * b", "sum[j] ((-a) * b)"),
        ("sum[i] -sum[j] a * b", "sum[i] (-(sum[j] (a * b)))"),
        ("not sum[j] a > b", "not ((sum[j] a) > b)"),
        # The built-in and the reduction of one name
        ("max(a, b) * max[j] c", "(max(a, b)) * (max[j] c)"),
        ("max[j] max(a, b) * c", "max[j] ((max(a, b)) * c)"),
        # Conditionals are operands
        ("if a { b } else { c } + d", "(if a { b } else { c }) + d"),
        ("sum[j] if a { b } else { c } * d", "sum[j] ((if a { b } else { c }) * d)"),
        (
            "if a { b } else if c { d } else { e }",
            "if a { b } else { if c { d } else { e } }",
        ),
    ],
)
def test_groups(text: str, grouped: str) -> None:
    assert parse_expression(text) == parse_expression(grouped)


def test_the_tests_can_tell_groups_apart() -> None:
    assert parse_expression("(a + b) * c") != parse_expression("a + (b * c)")
    assert write_expression(parse_expression("a - b - c")) == "((((a) - (b))) - (c))"
