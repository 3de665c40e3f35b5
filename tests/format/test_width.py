"""Lines of 88 columns are full: what is longer by one breaks, and where."""

from __future__ import annotations

import pytest

from kerngen.format.files import format_data
from kerngen.format.form import formatted
from kerngen.source.text import Source

WIDTH = 88


def form(text: str) -> list[str]:
    return formatted(Source("a.kern", text)).splitlines()


def statement(value: str) -> list[str]:
    """The lines of a statement with a value."""
    return form(f"kernel f(mut x: f32[n]) {{ x[i] = {value}; }}")[1:-1]


def name(columns: int, around: str) -> str:
    """A name so long that it fills a line together with what is around it."""
    return "n" * (columns - len(around))


@pytest.mark.parametrize("more", [0, 1])
def test_a_value_that_is_too_long_goes_below(more: int) -> None:
    value = "a + " + name(WIDTH + more, "    x[i] = a + ;")
    whole, below = f"    x[i] = {value};", f"        {value};"
    assert statement(value) == ([whole] if not more else ["    x[i] =", below])


@pytest.mark.parametrize("more", [0, 1])
def test_a_chain_that_is_too_long_below_breaks(more: int) -> None:
    first = name(WIDTH + more, "         + b;")
    below = [f"        {first} + b;"]
    broken = [f"        {first}", "        + b;"]
    assert statement(f"{first} + b") == ["    x[i] =", *(broken if more else below)]


@pytest.mark.parametrize("more", [0, 1])
def test_a_conditional_that_is_too_long_below_opens_where_it_is(more: int) -> None:
    factor = name(WIDTH + more, "         * if c { a } else { b };")
    below = ["    x[i] =", f"        {factor} * if c {{ a }} else {{ b }};"]
    open_ = [
        f"    x[i] = {factor} * if c {{",
        "        a",
        "    } else {",
        "        b",
        "    };",
    ]
    assert statement(f"{factor} * if c {{ a }} else {{ b }}") == (
        open_ if more else below
    )


@pytest.mark.parametrize("more", [0, 1])
def test_a_head_that_is_too_long_for_its_tail_breaks(more: int) -> None:
    factor = name(WIDTH + more, "    x[i] =  * if c {")
    lines = statement(f"{factor} * if c {{ a }} else {{ b }}")
    opened = ["        c", "    {", "        a"] if more else ["        a"]
    head = f"    x[i] = {factor} * if"
    assert lines[: len(opened) + 1] == [head if more else f"{head} c {{", *opened]


@pytest.mark.parametrize("more", [0, 1])
def test_a_call_that_is_too_long_below_opens(more: int) -> None:
    argument = name(WIDTH + more, "        g(a, );")
    below = ["    x[i] =", f"        g(a, {argument});"]
    opened = ["    x[i] = g(", "        a,", f"        {argument},", "    );"]
    assert statement(f"g(a, {argument})") == (opened if more else below)


@pytest.mark.parametrize("more", [0, 1])
def test_parameters_that_are_too_long_are_listed(more: int) -> None:
    long = name(WIDTH + more, "kernel f(mut x: f32[n], : f32) {")
    first, *rest = form(f"kernel f(mut x: f32[n], {long}: f32) {{ x[i] = 1.0; }}")
    assert first == (
        "kernel f(" if more else f"kernel f(mut x: f32[n], {long}: f32) {{"
    )
    assert (rest[0], rest[2:3]) == (
        ("    mut x: f32[n],", [") {"]) if more else ("    x[i] = 1.0;", [])
    )


@pytest.mark.parametrize("more", [0, 1])
def test_a_schedule_that_is_too_long_opens(more: int) -> None:
    kernel = name(WIDTH + more, "schedule  when m == 1 { gemv lanes(1) }")
    whole = f"schedule {kernel} when m == 1 {{ gemv lanes(1) }}"
    opened = [f"schedule {kernel} when m == 1 {{", "    gemv lanes(1)", "}"]
    assert form(whole) == (opened if more else [whole])


@pytest.mark.parametrize("more", [0, 1])
def test_a_sum_that_is_too_long_below_breaks_behind_its_indices(more: int) -> None:
    value = name(WIDTH + more, "        sum[j] ;")
    lines = statement(f"sum[j] {value}")
    broken = ["        sum[j]", f"            {value};"]
    below = [f"        sum[j] {value};"]
    assert lines == ["    x[i] =", *(broken if more else below)]


def test_a_diff_has_both_forms_by_their_names() -> None:
    given = format_data(b"const A:f32=1.0;\nuse 'a';".replace(b"'", b'"'), "a.kern")
    assert given.changed
    assert given.diff().splitlines() == [
        "--- a.kern",
        "+++ a.kern (formatted)",
        "@@ -1,2 +1,3 @@",
        "-const A:f32=1.0;",
        '-use "a";',
        "+const A: f32 = 1.0;",
        "+",
        '+use "a";',
    ]
    assert given.diff().endswith("\n")
    again = format_data(given.after, "a.kern")
    assert not again.changed
    assert again.diff() == ""
