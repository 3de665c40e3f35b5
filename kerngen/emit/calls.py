"""Calls in generated Python: of built-ins, by templates, and of the user's functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from kerngen.emit.python_code import Code, Precedence

_PLACEHOLDER = re.compile(r"\{(\d)\}")
"""A placeholder in the template of a built-in: `np.hypot({0}, {1})`."""

_ARGUMENT = re.compile(r"(?:(?<=\()|(?<=, ))\{\d\}(?=[,)])")
"""A placeholder that is a whole argument of a call, and so needs no parentheses."""


def fill_template(template: str, arguments: Sequence[Code]) -> Code:
    """Return a template with arguments for `{0}`, `{1}` and so on, in parentheses if needed."""
    pieces: list[str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(template):
        # In `np.hypot({0}, {1})` arguments need no parentheses, in `{0} ** 2` they do.
        argument = arguments[int(match[1])]
        whole = _ARGUMENT.match(template, match.start()) is not None
        pieces += [
            template[end : match.start()],
            argument.text if whole else argument.atom,
        ]
        end = match.end()
    return Code("".join([*pieces, template[end:]]), _level(template), fresh=True)


def _level(template: str) -> Precedence:
    """Return the precedence of a template: a call is an atom, all else the lowest."""
    shape = ast.parse(re.sub(r"\{\d\}", "x", template), mode="eval").body
    return Precedence.ATOM if isinstance(shape, ast.Call) else Precedence.CONDITIONAL


@final
@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A user's function as generated Python: its name, and how it is called.

    If it `needs_real`, its first argument is the float type to compute in.  If `fresh`, its
    result is a new array, never one of the arguments.
    """

    name: str
    needs_real: bool
    fresh: bool
