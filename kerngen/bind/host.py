"""Constant expressions of a shader, printed as Python."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from kerngen.bind import tree
from kerngen.bind.constants import Constants, Kind
from kerngen.bind.model import Override
from kerngen.emit.python_code import Code, Level
from kerngen.source.diagnostic import CompileError

_OPERATORS: Final = {
    "+": ("+", Level.SUM),
    "-": ("-", Level.SUM),
    "*": ("*", Level.PRODUCT),
    "/": ("//", Level.PRODUCT),
    "%": ("%", Level.PRODUCT),
    "<<": ("<<", Level.SHIFT),
    ">>": (">>", Level.SHIFT),
}
"""Of integers that are not negative; others are no sizes of workgroups."""

_CASTS: Final = ("u32", "i32")

PYTHON: Final[Mapping[Kind, str]] = {
    "i32": "int",
    "u32": "int",
    "f32": "float",
    "f16": "float",
    "bool": "bool",
}
"""The types of overrides in Python."""


def integer(
    node: tree.Expression,
    constants: Constants,
    overrides: Mapping[str, Override],
    names: Mapping[str, str],
) -> Code | None:
    """Return an integer expression as Python code for a pipeline's method, or None.

    `SIZE * 2u` becomes `self.SIZE * 2`.
    """
    with suppress(CompileError):
        return Code(str(constants.integer(node)))

    def code(inner: tree.Expression) -> Code | None:
        return integer(inner, constants, overrides, names)

    match node:
        case tree.Name(text=name) if name in overrides and name in names:
            own, override = f"self.{names[name]}", overrides[name]
            if override.default is not None or override.value is None:
                return Code(own)
            rest = code(override.value)
            text = rest and f"{rest.at(Level.OR)} if {own} is None else {own}"
            return Code(text, Level.CONDITIONAL) if text else None
        case tree.Binary(operator=sign, left=left, right=right) if sign in _OPERATORS:
            first, second = code(left), code(right)
            python, level = _OPERATORS[sign]
            if first is None or second is None:
                return None
            text = f"{first.at(level)} {python} {second.at(Level(level + 1))}"
            return Code(text, level)
        case tree.Call(callee=callee, arguments=(argument,)) if callee.text in _CASTS:
            return code(argument)
        case _:
            return None
