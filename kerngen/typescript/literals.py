"""Values as JavaScript's literals, each on one line if it is short.

{"name": "x", "axes": ["m", 4]}   becomes   { name: "x", axes: ["m", 4] }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.typescript.names import js_string

_WIDTH: Final = 100


@final
@dataclass(frozen=True, slots=True)
class Code:
    """A text of JavaScript, printed as it is."""

    text: str


Literal: TypeAlias = (
    "str | int | float | Code | Sequence[Literal] | Mapping[str, Literal]"
)


def js_literal(value: Literal, indent: int = 0, before: int = 0) -> str:
    """Return a value as JavaScript: on one line where that fits, else an entry on each.

    It follows `before` characters, such as a key, on a line with an indent.
    """
    short = _short(value)
    if indent + before + len(short) <= _WIDTH or isinstance(
        value, str | int | float | Code
    ):
        return short
    inner = indent + 2
    if isinstance(value, Mapping):
        begin, end = "{}"
        items = [f"{k}: {js_literal(v, inner, len(k) + 2)}" for k, v in value.items()]
    else:
        begin, end = "[]"
        items = [js_literal(each, inner) for each in value]
    lines = (f"{' ' * inner}{item}," for item in items)
    return "\n".join([begin, *lines, f"{' ' * indent}{end}"])


def _short(value: Literal) -> str:
    """Return a value on one line."""
    match value:
        case Code(text):
            return text
        case bool():
            return "true" if value else "false"
        case str():
            return js_string(value)
        case int() | float():
            return repr(value)
        case Mapping():
            items = [f"{key}: {_short(each)}" for key, each in value.items()]
            return f"{{ {', '.join(items)} }}" if items else "{}"
        case _:
            return f"[{', '.join(map(_short, value))}]"
