"""Host expressions that come as Python text: group counts and variants' conditions."""

from __future__ import annotations

import ast

_FUNCTIONS = {
    "ceil_div": "ceil_div",
    "max": "hostmath.maximum",
    "min": "hostmath.minimum",
}
"""What such a text may call, and where a generated module finds it.

A kernel may be named `max`: the module's own name would hide Python's.
"""


def host_lambda(text: str) -> str:
    """Return a function of the dims `d`."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id != "d":
            node.id = _FUNCTIONS[node.id]
    return f"lambda d: {ast.unparse(tree)}"
