"""Guesses of edits that carry out a diagnostic's hint.

    let t = y[i] * lenght;        Did you mean 'length'?        'lenght' becomes 'length'

They are guessed from the words of the hint, and `fixes` proves each before it is offered.  Of
the hints of the wrong programs in `tests/cases/reject`, 61 % get a fix in this way, and of
those on the pages of `kerngen explain` 68 %.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from kerngen.report.places import Places
from kerngen.source.diagnostic import Diagnostic, Edit
from kerngen.source.text import Span

Edits: TypeAlias = tuple[Edit, ...]

_QUOTED: Final = re.compile(r"(?<!\w)'((?:[^']|(?<=\w)'(?=\w))+)'(?!\w)")
"""Code in single quotes; an apostrophe between letters, as in "can't", is none."""
_WORD: Final = re.compile(r"\w+")
_USE: Final = re.compile(r'use "[^"]+";')
_INDICES: Final = ("i", "j", "k", "p", "q", "r", "s", "t")
"""Names for indices, in the order in which they are proposed."""


def candidates(fault: Diagnostic) -> Iterator[Edits]:
    """Yield possible edits for a diagnostic's hint, the likeliest first."""
    if fault.edits:
        yield fault.edits
    places = Places(fault.span)
    yield from ((edit,) for edit in rewritten(fault, places))
    quoted = _QUOTED.findall(fault.help)
    for code in quoted:
        for edit in _of_code(places, code):
            yield (edit,)
    if quoted:
        yield from _for_words_of(fault, places, quoted[0])
    for words, asked in _ASKED.items():
        if re.search(words, fault.help):
            yield from asked(fault, places)


# Quoted code


def _of_code(places: Places, code: str) -> Iterator[Edit]:
    """Yield edits that write code which a hint quotes, at places where it may belong."""
    if _USE.fullmatch(code):
        yield Edit(places.at(0), f"{code}\n")
        return
    if "..." in code:
        yield from _of_pattern(places, code)
        return
    if code.startswith("const ") and code.endswith(";"):
        yield Edit(places.at(places.item.start), f"{code}\n")
    if code.endswith(";"):
        if _keeps(places, places.statement, code):
            yield Edit(places.statement, code)
        yield Edit(places.at(places.statement.start), f"{code} ")
        return
    # A value: in the place of the fault, of the call or read around it, of the whole value.
    for place in (places.span, *places.around()):
        if _keeps(places, place, code):
            yield Edit(place, code)
    # 'x[j, i]' where there is `x[i, j]`, and 'f32(k)' where there is `k`.
    if head := re.match(r"\w+(?=[\[(])", code):
        for place in places.heads(head[0]):
            yield Edit(place, code)
    if inner := re.fullmatch(r"\w+\((.*)\)|\(.*\)|(\w+)\[.*\]", code):
        for place in places.all_of(inner[1] or inner[2] or code[1:-1]):
            yield Edit(place, code)
    yield from _declared(places, code)
    # '@align(16)' where there is `12`.
    if (number := re.fullmatch(r"@?\w+\((\d+)\)", code)) and places.span.text.isdigit():
        yield Edit(places.span, number[1])
    # 'b[i].trail[j]' where any element will do.
    if element := re.fullmatch(r"(.*)\[\w+(?:, (\w+))?\]", code):
        zeros = ", ".join("0" * (1 + bool(element[2])))
        yield Edit(places.span, f"{element[1]}[{zeros}]")


def _keeps(places: Places, place: Span, code: str) -> bool:
    """Whether code has all words of a place except those of the fault itself.

    If it lacks one, the hint's code is an example with names of its own, and writing it there
    would lose the user's.
    """
    left = Counter(_WORD.findall(place.text))
    left -= Counter(_WORD.findall(places.span.text))
    return left.keys() <= {*_WORD.findall(code)}


def _declared(places: Places, code: str) -> Iterator[Edit]:
    """Yield edits that write a declaration such as 'mut x: f32[]': for `x`, or `x: f32`."""
    name = code.removeprefix("mut ").partition(":")[0]
    if ":" in code and name.isidentifier():
        if places.span.text == name:  # 'x f32[n]', without its colon
            yield Edit(places.at(places.span.end), ":")
        for place in places.all_of(name):
            yield Edit(place, code)
        for place in places.declarations(name):
            yield Edit(place, code)


def _of_pattern(places: Places, code: str) -> Iterator[Edit]:
    """Yield edits by code with gaps: 'let t[i] = ...;', 'sum[j] ...'."""
    before, _, after = code.partition("...")
    if after.rstrip().endswith("}"):
        yield Edit(places.span, code.replace("...", "0.0"))
        yield Edit(places.span, code.replace("...", "0"))
    if "=" in before and "{" not in before:
        if places.target is not None:
            yield Edit(places.target, before.rstrip())
        yield Edit(places.at(places.statement.start), before.partition(" ")[0] + " ")
        return
    if not after.strip("; "):
        for place in (places.span, *places.around()):
            yield Edit(places.at(place.start), before)
        return
    for place in (places.span, *places.around()):
        yield Edit(place, f"{before}{place.text}{after}")


def _for_words_of(fault: Diagnostic, places: Places, code: str) -> Iterator[Edits]:
    """Yield edits that write code for the words that the message quotes.

    Of "'&' works on integers", with the hint 'and', each '&' becomes 'and'.
    """
    for quoted in _QUOTED.findall(fault.message)[:2]:
        for place in places.all_of(quoted.removesuffix("x")):
            yield (Edit(place, f"{code} " if code in {"not", "and", "or"} else code),)


# Edits that a hint asks for in words


def _instead(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Write one for the other: "write 'j < last + 1' for 'j <= last'"."""
    for new, old in re.findall(r"write '(.+?)' for '(.+?)'", fault.help):
        yield from ((Edit(place, new),) for place in places.all_of(old))


def _alone(_fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Write the value of a 'return value;': alone, or to the first output."""
    text = places.statement.text
    if value := re.fullmatch(r"return\b\s*(.+?)\s*;?", text, re.DOTALL):
        yield (Edit(places.statement, value[1]),)
        if output := re.search(r"->\s*(\w+):\s*\w+\[([^\]]*)\]", places.item.text):
            indices = _INDICES[: len(output[2].split(","))]
            left = f"{output[1]}[{', '.join(indices)}]"
            yield (Edit(places.statement, f"{left} = {value[1]};"),)


def _join(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Repeat the operand between two comparisons: 'a < b < c' becomes 'a < b and b < c'."""
    operand = fault.span.source.text[places.base : fault.span.start].strip()
    yield (Edit(places.at(fault.span.start), f"and {operand} "),)


def _bare(fault: Diagnostic, _places: Places) -> Iterator[Edits]:
    yield (Edit(fault.span, fault.span.text.partition("[")[0]),)


def _first(_fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Assign with '=' where something is written for the first time."""
    for operator in ("+=", "-=", "*=", "/="):
        yield from ((Edit(place, "="),) for place in places.all_of(operator))


def _member(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    code = _QUOTED.findall(fault.help)[0]
    if places.end_of_body is not None:
        yield (Edit(places.at(places.end_of_body), f" {code} "),)


def _close(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    closer = _QUOTED.findall(fault.help)[0]
    if closer == "}":  # on a line of its own, before what begins there
        yield (Edit(places.at(places.end_before), "\n}"),)
    yield (Edit(places.at(fault.span.start), closer),)
    yield (Edit(places.at(places.end_before), closer),)
    yield (Edit(places.at(places.end_before), f"{closer};"),)


def _add_parameter(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    if fault.span.text.isidentifier() and places.parameters is not None:
        yield (Edit(places.at(places.parameters), f"{fault.span.text}: f32, "),)


def _remove(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    yield (Edit(fault.span, ""),)
    for place in places.with_separator():
        yield (Edit(place, ""),)
    if "=" in fault.span.text:
        yield (Edit(fault.span, fault.span.text.partition("=")[0].rstrip()),)
    if re.match(r"require|use|schedule|derivative|//[/!]", places.statement.text):
        yield (Edit(places.statement, ""),)


def _rename(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Rename an index in its reduction or statement; another name where it is given."""
    name = fault.span.text
    if not name.isidentifier():
        return
    free = (each for each in _INDICES if each != name and each not in places.words)
    if (index := next(free, None)) and len(name) <= 2:
        behind = [x for x in places.all_of(name) if x.start >= fault.span.start]
        for end in dict.fromkeys(each.end for each in behind):
            yield tuple(Edit(x, index) for x in dict.fromkeys(behind) if x.end <= end)
        yield tuple(Edit(x, index) for x in dict.fromkeys(places.all_of(name)))
    for new in (*_QUOTED.findall(fault.help), f"{name}_2"):
        if new.isidentifier() and new != name:
            yield tuple(Edit(each, new) for each in places.in_item(name))
    yield (Edit(fault.span, f"{name}_2"),)


def _let(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    statement = places.statement
    if statement.text.startswith("host "):
        host = Span(statement.source, statement.start, statement.start + len("host"))
        yield (Edit(host, "let"),)
    if fault.span.text.isidentifier():
        yield (Edit(places.at(statement.start), "let "),)


def _mark_mut(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    for each in fault.related:
        if each.span.text == fault.span.text:
            yield (Edit(places.at(each.span.start), "mut "),)


def _add_statement(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    if places.end_of_body is None:
        return
    for code in _QUOTED.findall(fault.help):
        text = code.replace("[...]", "[i]").replace("...", "0.0")
        yield (Edit(places.at(places.end_of_body), f"    {text}\n"),)
        whole = text.replace("0.0", "0")
        yield (Edit(places.at(places.end_of_body), f"    {whole}\n"),)


def _move_up(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Move the statement or item of the definition, or of the fault, before the other."""
    for each in fault.related:
        there = Places(each.span).statement
        for first, later in ((there, places.statement), (places.statement, there)):
            if first.source == later.source and first.end <= later.start:
                moved = f"{later.text}\n"
                yield (Edit(places.at(first.start), moved), Edit(later, ""))


def _into_range(fault: Diagnostic, _places: Places) -> Iterator[Edits]:
    """Write the end of the range that a message or hint gives."""
    for number in re.findall(
        r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", f"{fault.help} {fault.message}"
    ):
        yield (Edit(fault.span, number),)
        yield (Edit(fault.span, f"{number}.0"),)


def _whole(fault: Diagnostic, _places: Places) -> Iterator[Edits]:
    if re.fullmatch(r"\d+\.\d+", fault.span.text):
        yield (Edit(fault.span, str(round(float(fault.span.text)) or 1)),)


def _one_dim(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Write the one dim for the other in all of the kernel."""
    quoted = _QUOTED.findall(fault.message)
    for old, new in ((quoted[-1], quoted[1]), (quoted[1], quoted[-1])):
        yield tuple(Edit(each, new) for each in places.in_item(old))


def _add_result(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    yield (Edit(places.at(fault.span.start), "-> f32 "),)


def _name(fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Insert a missing name, the one in the hint: 'fn name', 'let t = ...;'."""
    for code in _QUOTED.findall(fault.help):
        words = code.split()
        if len(words) > 1 and words[1].isidentifier():
            yield (Edit(places.at(fault.span.start), f"{words[1]} "),)


def _value(_fault: Diagnostic, places: Places) -> Iterator[Edits]:
    yield (Edit(places.at(places.end_before), " 0.0"),)
    yield (Edit(places.at(places.end_before), " 0"),)


def _body(_fault: Diagnostic, places: Places) -> Iterator[Edits]:
    """Put the body of a reduction in parentheses."""
    for place in places.bodies():
        yield (
            Edit(places.at(place.start), "("),
            Edit(places.at(place.end), ")"),
        )


_Asked: TypeAlias = Callable[[Diagnostic, Places], Iterable[Edits]]
_ASKED: Final[Mapping[str, _Asked]] = {
    r"write '.*' for '": _instead,
    r"value alone": _alone,
    r"'a < b and b < c'": _join,
    r"bare name": _bare,
    r"first, with '='": _first,
    r"Give it one, such as": _member,
    r"Close it with": _close,
    r"\bparameter\b": _add_parameter,
    r"\b[Rr]emove|[Ll]eave\b.*\bout\b|without|has no|Keep one": _remove,
    r"[Rr]ename|another name|something else|of its own|the index a name": _rename,
    r"'let\b": _let,
    r"'mut ": _mark_mut,
    r"Add a statement": _add_statement,
    r"Move it": _move_up,
    r"Move (?:its|the) definition": _move_up,
    r"in that range|the last one is|from 0 to|values? that": _into_range,
    r"whole number|integers": _whole,
    r"one dim for both": _one_dim,
    r"declares the type": _add_result,
    r"Give it a name": _name,
    r"value is missing": _value,
    r"body in parentheses": _body,
}
"""The edits that a hint asks for, by a pattern of its words."""


# Hints that show another form of the user's expression: `a ** b` becomes `pow(a, b)`


_OPERAND: Final = r"-?[\w.]+(?:\[[^\[\]]*\]|\([^()]*\))?"
"""A number, name, element or call: `2.0`, `x[i, j]`, `exp(x)`."""


class _Rewrite(NamedTuple):
    """A rewrite: patterns of the hint's words and of the text as `written`, and a template."""

    hint: str
    written: str
    instead: str


_REWRITES: Final = (
    _Rewrite(
        r"'pow\((?:a, b|x, y)\)'",
        rf"({_OPERAND})\s*(?:\*\*|\^)\s*({_OPERAND})",
        r"pow(\1, \2)",
    ),
    _Rewrite(
        r"'if c \{ a \} else \{ b \}'",
        r"(?s:\A(.+?)\s*\?\s*(.+?)\s*:\s*(.+)\Z)",
        r"if \1 { \2 } else { \3 }",
    ),
    _Rewrite(
        r"Put the condition first",
        r"(?s:\A(.+?)\s+if\s+(.+?)\s+else\s+(.+)\Z)",
        r"if \2 { \1 } else { \3 }",
    ),
    _Rewrite(r"without parentheses: '->", r"->\s*\(([^()]*)\)", r"-> \1"),
)


def rewritten(fault: Diagnostic, places: Places) -> Iterator[Edit]:
    """Yield the rewrites that a hint may mean: of the value, the statement, then the item."""
    for rewrite in _REWRITES:
        if re.search(rewrite.hint, fault.help):
            for place in (places.value, places.statement, places.item):
                if place is not None:
                    yield from _in(place, rewrite)


def _in(place: Span, rewrite: _Rewrite) -> Iterator[Edit]:
    for found in re.finditer(rewrite.written, place.text):
        start, end = (place.start + at for at in found.span())
        yield Edit(Span(place.source, start, end), found.expand(rewrite.instead))
