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
    own = node.name in env.later or node.name in env.current.bound
    return node.name == NAME and not own and scope.get(NAME) is None
