"""JavaScript names: the Python ones, with a `$` added to reserved words.

One that JavaScript or TypeScript reserves gets a `$`, which no name of the kernel
language has: `delete` becomes `delete$`.
"""

from __future__ import annotations

import json
import posixpath
from typing import Final

from kerngen.emit.module_name import module_path

RUNTIME: Final = "kerngen"
"""The npm package that generated modules import."""

_KEYWORDS: Final = frozenset(
    "arguments await break case catch class const continue debugger default delete do "
    "else enum eval export extends false finally for function if implements import in "
    "instanceof interface let new null package private protected public return static "
    "super switch this throw true try typeof var void while with yield".split()
)
_TYPES: Final = frozenset(
    "any bigint boolean never number object string symbol undefined unknown".split()
)
_GLOBALS: Final = frozenset(
    "BigInt Float32Array Infinity Math NaN Number Object Uint32Array URL Readonly ReadonlyArray "
    "options".split()
)
"""The globals that generated text refers to."""

INHERITED: Final = frozenset(
    "constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString "
    "toString valueOf".split()
)
"""The properties that every object inherits."""

RESERVED: Final = _KEYWORDS | _TYPES | _GLOBALS


def js_name(name: str) -> str:
    """Return the JavaScript name for a Python name."""
    return f"{name}$" if name in RESERVED else name


def js_string(text: str) -> str:
    """Return a string literal."""
    return json.dumps(text, ensure_ascii=False).replace("\u2028", "\\u2028")


def js_module(source: str, to: str) -> str:
    """Return the import path of another source's module.

    >>> js_module("dsl/a/scene.kern", "dsl/lights.kern")
    '../lights.js'
    """
    path = posixpath.splitext(module_path(source, to))[0]
    return f"{path}.js" if path.startswith("../") else f"./{path}.js"
