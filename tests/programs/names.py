"""Names for what a program introduces: plain ones, and ones that mean something elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .dice import Dice

PLAIN = (*"abcdeghmnsvwxyz", "alpha", "bias", "param", "grad", "ids", "total")

RESERVED = (
    # Words of WGSL, some only reserved.
    *("array", "loop", "override", "var", "class", "texture", "sampler", "target"),
    *("enable", "discard", "bitcast", "ptr", "async", "vec4f", "workgroup", "switch"),
    # Words and usual names of Python.
    *("def", "lambda", "len", "range", "self", "None", "np", "ref", "yield", "is"),
    # What generated code calls its own things.
    *("lane", "group", "u", "out", "ctx", "partial", "parts", "local", "x_new"),
    *("element", "uniforms", "hostmath", "dims", "f", "gpu", "main", "d", "gid"),
)

KERNELS = ("f", "sum", "main", "softmax", "max", "while", "kernels", "element", "print")
FUNCTIONS = ("g", "h", "sq", "lambda", "main4", "norm", "u", "x_new", "class")
INDICES = ("i", "j", "k", "p", "q", "r", "t", "l")
ODD_INDICES = ("lane", "row", "column", "o", "id", "index", "global", "with")


@dataclass
class Names:
    """Hands out names of one name space, each once."""

    dice: Dice
    taken: set[str] = field(default_factory=set[str])
    odd: set[str] = field(default_factory=set[str])

    def of(self, plain: Sequence[str], odd: Sequence[str], percent: int = 25) -> str:
        """Return a name that is free, from the odd ones so often."""
        rare = self.dice.chance(percent)
        free = [n for n in (odd if rare else plain) if n not in self.taken]
        name = self.dice.pick(free) if free else f"{plain[0]}{len(self.taken)}"
        self.taken.add(name)
        if name in odd:
            self.odd.add(name)
        return name
