"""The Pygments lexer of the language.

That is rich, mkdocs, Sphinx, IPython and others: they find the lexer by its entry point.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from pygments.lexer import (
    RegexLexer,
    bygroups,  # pyright: ignore[reportUnknownVariableType]  # it has no annotations
    default,
)
from pygments.token import string_to_tokentype

from kerngen.syntax.highlight_rules import RULES, Rule


def _rule(rule: Rule) -> Any:
    """Return a rule as Pygments has them."""
    pattern, kinds, then = rule
    if not kinds:
        return default(then)
    tokens = [string_to_tokentype(kind) for kind in kinds]
    action = tokens[0] if len(tokens) == 1 else _by_groups(*tokens)
    return (pattern, action, then) if then else (pattern, action)


def _by_groups(*tokens: Any) -> Any:
    return cast("Any", bygroups)(*tokens)


class KernLexer(RegexLexer):  # type: ignore[misc]  # it has no annotations
    """A tolerant lexer: it highlights programs with errors, and fragments."""

    name = "kerngen"
    aliases: ClassVar = ["kern", "kerngen"]
    filenames: ClassVar = ["*.kern"]
    tokens: ClassVar = {
        state: [_rule(rule) for rule in rules] for state, rules in RULES.items()
    }
