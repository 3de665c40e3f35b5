"""Words in messages and names: `2 axes`, and names of Python modules from any text."""

from __future__ import annotations

import keyword
import re
import sys
import unicodedata
from typing import Final

_IMPORTED: Final = frozenset(("kerngen", "numpy", "wgpu"))
"""Packages that generated modules import: another package of that name would hide them."""


def python_word(text: str) -> str:
    """Return the nearest valid Python name for a text.

    Characters that a name can't hold become `_`; a keyword gets a trailing one.

    >>> python_word("my-kernels"), python_word("2d"), python_word("if")
    ('my_kernels', '_2d', 'if_')
    """
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text))
    if keyword.iskeyword(name):
        return f"{name}_"
    return name if name.isidentifier() else f"_{name}"


def package_fault(name: str) -> str:
    """Return why a Python package can't have this name, or "" if it can.

    >>> package_fault("if"), package_fault("random"), package_fault("my_kernels")
    ("'if' is a keyword of Python", "'random' is a module of Python's standard library", '')
    """
    if keyword.iskeyword(name):
        return f"'{name}' is a keyword of Python"
    if name in sys.stdlib_module_names:
        return f"'{name}' is a module of Python's standard library"
    if name in _IMPORTED:
        return f"generated modules import a package '{name}'"
    if python_word(name) != name:
        return "a package's name has letters, digits and '_', and begins with no digit"
    return ""


def package_like(name: str) -> str:
    """Return a valid package name that resembles an invalid one.

    >>> package_like("my-kernels"), package_like("random")
    ('my_kernels', 'random_kernels')
    """
    word = python_word(name)
    return f"{word.rstrip('_')}_kernels" if package_fault(word) else word


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 axis` or `2 axes`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
