"""Host expressions that come as Python text: group counts and variants' conditions."""

from __future__ import annotations

import re

_FUNCTIONS = {
    "ceil_div": "ceil_div",
    "max": "hostmath.maximum",
    "min": "hostmath.minimum",
    "parts": "hostmath.parts",
}
"""What such a text may call, and where a generated module finds it.

A kernel may be named `max`: the module's own name would hide Python's.
"""


def host_lambda(text: str) -> str:
    """Return a function of the dims `d`."""
    called = re.sub(r"\b(\w+)(?=\()", lambda match: _FUNCTIONS[match[1]], text)
    return f"lambda d: {called}"
