"""Names that entry points use, and that the file does not declare.

Such a file is a part of a program: naga refuses its module, and the bindings that are
declared elsewhere would be missing in its pipelines.  Names of functions that are called
are not checked, as compilers have functions of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kerngen.bind import tree
from kerngen.bind.faults import UnknownWgslName
from kerngen.bind.types import is_predeclared
from kerngen.source.similar import suggesting

_WORDS: Final = frozenset(
    "_ let return if else for loop while break continue continuing switch case default "
    "discard const_assert bitcast function private workgroup uniform storage read write "
    "read_write".split()
)
"""Words of WGSL that the scanner takes for names in bodies."""


def missing(
    functions: Iterable[tree.Function], declared: Mapping[str, tree.Declaration]
) -> Iterator[UnknownWgslName]:
    """Yield the types, variables and constants that functions lack, each once."""
    seen = {*declared, *_WORDS}
    for function in functions:
        for name in (*_types(function), *function.free):
            text = name.text
            if text in seen or is_predeclared(text):
                continue
            seen.add(text)
            yield UnknownWgslName(
                span=name.span,
                what="declaration of",
                name=text,
                remedy=suggesting("", text, [*declared]).strip(),
            )


def _types(function: tree.Function) -> Iterator[tree.Name]:
    for each in function.parameters:
        yield each.type
    if function.result:
        yield function.result.type
