"""How tightly operators bind, as the language has them, the loosest first."""

from __future__ import annotations

LEVELS = [
    ["or"],
    ["and"],
    ["==", "!=", "<", "<=", ">", ">="],
    ["|"],
    ["^"],
    ["&"],
    ["<<", ">>"],
    ["+", "-"],
    ["*", "/", "%"],
]
