"""`inf`: the one constant that every file has, unless it gives the name a meaning."""

from __future__ import annotations

import math
from typing import Final

from kerngen.check.environment import Environment
from kerngen.check.scope import Scope
from kerngen.ir.nodes import Constant
from kerngen.ir.types import Scalar
from kerngen.syntax import ast

NAME: Final = "inf"
INFINITY: Final = Constant(math.inf, Scalar.F32)


def is_infinity(env: Environment, scope: Scope, node: ast.Name) -> bool:
    """Whether a name is the constant's: nothing of the program has it."""
    if node.name != NAME or NAME in env.later or scope.get(NAME) is not None:
        return False
    return not env.current.binds(NAME, node.span)
