"""The outline of a file is what the parser finds in it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.outline import Outline, outline_of
from kerngen.syntax.parser import parse

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for folder in ("dsl", "examples", "kerngen", "tests")
    for file in sorted((ROOT / folder).rglob("*.kern"))
    if file.is_file()
]

blanks = st.sampled_from([" ", "\n", "\r\n", '// use "no.kern";\n', "//// kernel no\n"])
ITEMS = (
    'use "other.kern" ;',
    'use "a//b {.kern" ;',
    "const use_ : f32 = 1.0 ;",
    "kernel k ( kernel_ : f32 [ n ] ) -> y : f32 [ n ] { y [ i ] = kernel_ [ i ] ; }",
    "kernel g = gradient of k by kernel_ given y ;",
    "kernel sum ( x : f32 [ n ] ) -> y : f32 [ ] { y = sum [ i ] x [ i ] ; }",
    "schedule k when n > 1 { map }",
    "schedule sum . total { reduce }",
    "schedule k , sum . total , when n > 1 { map }",
    "schedule * { generic }",
    "schedule sum * , * _ * . total , k { map }",
    "fn schedule_ ( x : f32 ) -> f32 { x }",
)


def parsed(source: Source, items: tuple[ast.Item, ...]) -> Outline:
    """The outline, from the syntax tree."""
    kernels = (
        item.name.name
        for item in items
        if isinstance(item, ast.KernelItem | ast.GradientItem)
    )
    scheduled = (
        target.kernel.name
        for item in items
        if isinstance(item, ast.ScheduleItem)
        for target in item.targets
    )
    return Outline(outline_of(source).uses, frozenset(kernels), frozenset(scheduled))


def agree(source: Source) -> None:
    outline, items = outline_of(source), parse(source).items
    assert outline == parsed(source, items)
    uses = [item for item in items if isinstance(item, ast.UseItem)]
    assert [use.path for use in outline.uses] == [use.path for use in uses]
    for use, item in zip(outline.uses, uses, strict=True):
        assert use.span.text == f'"{item.path}"'
        assert item.span.start < use.span.start < use.span.end < item.span.end


def test_of_every_file_there_is() -> None:
    agreed = 0
    for file in FILES:
        source = Source(file.name, file.read_bytes().decode("utf-8"))
        with suppress(CompileError):
            agree(source)
            agreed += 1
    assert agreed > 100


@given(st.lists(st.sampled_from(ITEMS), max_size=5), st.lists(blanks, min_size=1))
def test_whatever_stands_between_the_words(
    items: list[str], between: list[str]
) -> None:
    words = " ".join(items).split(" ")
    text = "".join(
        word + between[n % len(between)] + " " for n, word in enumerate(words)
    )
    if "{.kern" in text:  # the one string with a blank in it
        text = " ".join(items)
    agree(Source("test.kern", text))


@pytest.mark.parametrize(
    "text", ["", "use", 'use "open', "use kernel schedule", 'use " use "', "schedule }"]
)
def test_of_a_faulty_file_is_something(text: str) -> None:
    outline_of(Source("test.kern", text))
