"""Names of projects are taken, or refused with one that is taken."""

from __future__ import annotations

import re
from keyword import iskeyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from kerngen.scaffold.name import ProjectName
from tests.budget import examples


@pytest.mark.parametrize(
    ("name", "package"),
    [("layers", "layers"), ("My-Kernels", "my_kernels"), ("a.b_c2", "a_b_c2")],
)
def test_a_name_has_a_package(name: str, package: str) -> None:
    assert ProjectName(name).package == package


@pytest.mark.parametrize(
    ("name", "why", "instead"),
    [
        ("if", "'if' is a keyword of Python", "my-if"),
        ("2d", "a Python package can't begin with a digit", "my-2d"),
        ("random", "'random' is a module of Python's standard library", "my-random"),
        ("kerngen", "the project itself needs another 'kerngen'", "my-kerngen"),
        ("a b", "a name has letters", "a-b"),
        ("<b>", "a name has letters", "b"),
        ("Größe", "a name has letters", "Groe"),
        ("-", "a name has letters", ""),
        ("", "it is empty", ""),
    ],
)
def test_what_is_no_name_is_refused(name: str, why: str, instead: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        ProjectName(name)
    suggested = re.search(r" '([^']+)' would do\.$", str(refused.value))
    assert (suggested[1] if suggested else "") == instead


@settings(max_examples=examples(30))
@given(st.text(max_size=12))
def test_any_text_is_a_name_or_has_one_suggested(text: str) -> None:
    try:
        taken = ProjectName(text)
    except ValueError as error:
        suggested = re.search(r" '([\w.-]+)' would do\.$", str(error))
        if suggested is None:
            return
        taken = ProjectName(suggested[1])
    assert taken.package.isidentifier()
    assert not iskeyword(taken.package)
    canonicalize_name(taken.name, validate=True)
