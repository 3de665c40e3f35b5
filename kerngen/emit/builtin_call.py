"""Fill a built-in's NumPy template with arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from kerngen.emit.python_code import Code, Level

_PLACEHOLDER = re.compile(r"(?P<before>[(,] ?)?\{(?P<number>\d)\}(?P<after>[,)])?")


def fill_template(template: str, arguments: Sequence[Code]) -> Code:
    """Return the template with its arguments, in parentheses where they need them."""

    def fill(match: re.Match[str]) -> str:
        before, after = match["before"] or "", match["after"] or ""
        argument = arguments[int(match["number"])]
        text = argument.text if before and after else argument.atom
        return f"{before}{text}{after}"

    return Code(_PLACEHOLDER.sub(fill, template), _level(template), fresh=True)


def _level(template: str) -> Level:
    """Return how tightly the template binds: a call is an atom, all else loose."""
    shape = ast.parse(re.sub(r"\{\d\}", "x", template), mode="eval").body
    return Level.ATOM if isinstance(shape, ast.Call) else Level.CONDITIONAL
