"""Texts derived from the grammar itself: rules expanded at random, as lark reads them."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any, Final

from kerngen.syntax.parser import build_parser, grammar_text

from .corpus import NAMES, NUMBERS

_DEPTH: Final = 30
_SAMPLES: Final = {
    "NAME": NAMES,
    "INT": tuple(n for n in NUMBERS if "." not in n and "e" not in n),
    "FLOAT": tuple(n for n in NUMBERS if "." in n),
    "REDUCE": ("sum", "prod", "max", "min", "argmax", "argmin"),
    "STRING": ('"a.kern"', '""', '"../b/c.kern"'),
    "DOC": ("/// Text.\n", "///\n"),
    "FILE_DOC": ("//! Text.\n",),
    "ASSIGN_OP": ("+=", "-=", "*=", "/="),
}
"""What stands for the terminals that are no fixed text."""


@cache
def _grammar() -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the expansions of each rule, and the text of each fixed terminal."""
    parser = build_parser(grammar_text())
    rules: dict[str, list[Any]] = {}
    for rule in parser.rules:
        rules.setdefault(rule.origin.name, []).append(rule.expansion)
    texts = {terminal.name: terminal.pattern.value for terminal in parser.terminals}
    return rules, texts


@cache
def _least(name: str, within: int = _DEPTH) -> int:
    """Return how deep the flattest derivation of a rule is."""
    rules, _ = _grammar()
    if name not in rules:
        return 0
    if within == 0:
        return _DEPTH
    depths = (
        max((_least(symbol.name, within - 1) for symbol in expansion), default=0)
        for expansion in rules[name]
    )
    return 1 + min(depths)


def derived(random: Random, start: str = "program", depth: int = _DEPTH) -> str:
    """Return a text that the grammar derives; beyond a depth, by the flattest rules."""
    rules, texts = _grammar()
    if start not in rules:
        return f"{random.choice(_SAMPLES.get(start, (texts[start],)))} "
    expansions = rules[start]
    cost = [max((_least(s.name) for s in e), default=0) for e in expansions]
    fitting = [e for e, c in zip(expansions, cost, strict=True) if c < depth]
    flattest = expansions[cost.index(min(cost))]
    chosen = random.choice(fitting) if fitting else flattest
    return "".join(derived(random, symbol.name, depth - 1) for symbol in chosen)
