"""The TextMate grammar for VS Code and others, made from the highlighting rules.

A state of the rules becomes a list of patterns.  TextMate has no `#pop`: there, a state ends
where none of its rules matches, which is where the rules have `#pop`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerngen.syntax.highlight import RULES, Rule

SCOPES: Final[Mapping[str, str]] = {
    "Comment.Single": "comment.line.double-slash",
    "Keyword": "keyword.control",
    "Keyword.Declaration": "storage.type",
    "Keyword.Reserved": "keyword.operator.word",
    "Keyword.Type": "support.type",
    "Literal.Number.Float": "constant.numeric.float",
    "Literal.Number.Hex": "constant.numeric.hex",
    "Literal.Number.Integer": "constant.numeric.integer",
    "Literal.String": "string.quoted.double",
    "Literal.String.Doc": "comment.line.documentation",
    "Name": "variable.other",
    "Name.Builtin": "support.function",
    "Name.Decorator": "entity.other.attribute-name",
    "Name.Function": "entity.name.function",
    "Operator": "keyword.operator",
    "Punctuation": "punctuation",
}
"""The scope of each kind; blanks have none."""


def grammar() -> dict[str, Any]:
    """Return the grammar in the form of its JSON file."""
    return {
        "comment": "Made by 'tools/vscode --grammar' from kerngen/syntax/highlight.py.",
        "name": "kerngen",
        "scopeName": "source.kern",
        "patterns": [{"include": "#root"}],
        "repository": {
            state: {"patterns": [*_patterns(rules)]} for state, rules in RULES.items()
        },
    }


def _patterns(rules: tuple[Rule, ...]) -> Iterator[dict[str, Any]]:
    for pattern, kinds, then in rules:
        if then == "#pop":
            continue
        if then is None:
            yield {"match": pattern, **_scopes(kinds, "captures")}
        else:
            yield {
                "begin": pattern,
                "end": _none_of(RULES[then]),
                **_scopes(kinds, "beginCaptures"),
                "patterns": [{"include": f"#{then}"}],
            }


def _scopes(kinds: tuple[str, ...], captures: str) -> dict[str, Any]:
    """Return the scopes of a match, or of its groups."""
    names = [SCOPES.get(kind) for kind in kinds]
    if len(names) == 1 and captures == "captures":
        return {"name": f"{names[0]}.kern"} if names[0] else {}
    first = 1 if len(names) > 1 else 0
    scopes = {
        str(number): {"name": f"{name}.kern"}
        for number, name in enumerate(names, first)
        if name
    }
    return {captures: scopes}


def _none_of(rules: tuple[Rule, ...]) -> str:
    """Return a pattern that matches, and is empty, where no rule of a state does."""
    patterns = (f"(?:{pattern})" for pattern, _, then in rules if then != "#pop")
    return f"(?!{'|'.join(patterns)})"
