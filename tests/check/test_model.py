"""The model of a file: types, ranges and definitions, by hand."""

from __future__ import annotations

import pytest

from kerngen.check.files.checker import check_file
from kerngen.check.model import Meaning, Model
from kerngen.source.text import Source
from kerngen.syntax.parser import parse

TEXT = """\
const HALF: f32 = 0.5;
fn twice(v: f32) -> f32 { v + v }
kernel k(a: f32[m, n], s: f32, at: u32) -> y: f32[m] {
    let big[i] = max[j] a[i, j];
    y[r] = s * twice(big[r]) + HALF * sum[p] a[r, p];
}
"""


@pytest.fixture(scope="module")
def model() -> Model:
    source = Source("k.kern", TEXT)
    return check_file(parse(source), source, (), None).model


def meaning(model: Model, text: str, skip: int = 0) -> Meaning:
    """Return what is known at the last character of a text, which occurs once."""
    assert TEXT.count(text) == 1
    found = model.at(TEXT.index(text) + len(text) - 1 - skip)
    assert found is not None
    return found


def defined(meaning: Meaning) -> tuple[int, str]:
    """Return the line of a definition, and its text."""
    assert meaning.definition is not None
    return meaning.definition.line, meaning.definition.text


@pytest.mark.parametrize(
    ("text", "kind", "type_", "extent", "definition"),
    [
        ("y[r] = s", "a scalar", "f32", None, (3, "s")),
        ("max[j] a", "an input", "f32[m, n]", None, (3, "a")),
        ("max[j] a[i", "an index", "i32", "m", (4, "i")),
        ("max[j] a[i, j", "an index", "i32", "n", (4, "j")),
        ("twice(big", "a let", "f32[m]", None, (4, "big")),
        ("s * twice", "a function", "f32", None, (2, "twice")),
        ("+ HALF", "a constant", "f32", None, (1, "HALF")),
        ("{ v", "a parameter", "f32", None, (2, "v")),
    ],
)
def test_a_name_has_its_type_range_and_definition(
    model: Model,
    text: str,
    kind: str,
    type_: str,
    extent: str | None,
    definition: tuple[int, str],
) -> None:
    found = meaning(model, text)
    assert (found.kind, found.type, found.extent) == (kind, type_, extent)
    assert defined(found) == definition


def test_an_expression_has_its_type(model: Model) -> None:
    assert meaning(model, "twice(big[r])").type == "f32"
    types = {TEXT[each.start : each.end]: each.type for each in model}
    assert types["s * twice(big[r])"] == types["v + v"] == "f32"


def test_the_uses_of_a_name_begin_with_its_definition(model: Model) -> None:
    definition = meaning(model, "twice(big").definition
    assert definition is not None
    uses = model.uses(definition)
    assert [TEXT[each.start : each.end] for each in uses] == ["big", "big"]
    assert uses[0].start == TEXT.index("big[i]")


def test_nothing_is_known_of_a_comma(model: Model) -> None:
    assert model.at(TEXT.index("f32, at") + 3) is None


def test_each_part_of_a_chain_has_its_type() -> None:
    text = (
        "struct S { v: vec3f } "
        "kernel k(s: S[n], m: mat2x2f[n], t: S) -> y: f32[n] "
        "{ y[i] = s[i].v.x + m[i][1].y + t.v.zy.x; }"
    )
    checked = check_file(
        parse(Source("k.kern", text)), Source("k.kern", text), (), None
    )
    types = {text[each.start : each.end]: each.type for each in checked.model}
    assert types["s[i].v"] == types["t.v"] == "vec3f"
    assert types["m[i]"] == "mat2x2f"
    assert types["m[i][1]"] == types["t.v.zy"] == "vec2f"
    assert types["s[i].v.x"] == "f32"
