"""Recognisers of other languages' syntax: `float x`, `np.exp(x)`, `sum(j) x[j]`.

Types, names of parameters and outputs, `if`, reductions, subscripts and arguments.
"""

from __future__ import annotations

import re

from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.nodes import REDUCE_KINDS
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import faults
from kerngen.syntax.lexemes import Lexeme, lexemes
from kerngen.syntax.mistakes.binders import left_indices
from kerngen.syntax.mistakes.foreign import (
    FUNCTIONS,
    MODULES,
    REDUCTIONS,
    VALUES,
    Reduced,
    called,
)
from kerngen.syntax.mistakes.foreign_types import OWN_TYPE, TYPES, without_generics
from kerngen.syntax.mistakes.mistake import Mistake
from kerngen.syntax.wording import VALUE_STARTS

_TYPE_FIRST = re.compile(
    r"(\w+)\s*(\[[^\[\]]*\])?([\s*&]*)(?:__restrict__\s+|restrict\s+|const\s+)?(\w*)"
    r"(\[[^\[\]]*\])?"
)
"""A parameter in C's order: the type, its axes, pointer signs, the name, the name's axes."""
_TYPE = re.compile(r"(?:<(?:[^<>;(){}=]|<[^<>;(){}=]*>)*>|[^,;(){}=])*")
"""A type with all its arguments: `array<vec3<f32>, 4>`."""
_PLAIN_TYPE = re.compile(r"\w+(?:\[[^\[\]]*\])?")
_FIXED = re.compile(r"\[\s*(\w+)\s*;\s*(\w+)\s*\]")
"""Rust's array type: `[f32; 4]`."""
_AXES_FIRST = re.compile(r"((?:\[\w*\]\s*)+)(\w+)")
"""A type behind its axes: `[m][n]f32`."""
_DIVIDED = re.compile(r"\s*(//)\s*[\w(][^\n]*[\]);{]\s*$")
"""A `//` whose line ends like code, as in `x[i // 2];`: a division was meant."""
_AXES = re.compile(r"\s*\[[^\[\]]*\]")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]\s*\[([^\[\]]*)\]")
"""Subscripts in separate brackets: `[i][j]`."""
_REDUCTION = re.compile(r"(?:sum|prod|max|min|argmax|argmin)_?")
"""The name of a reduction, also as in TeX: `sum_{j}`."""
_CALLED = re.compile(r"[A-Za-z_]\w*")
_NAMED_INDEX = re.compile(r"\s*(?:\(\s*(\w+)\s*\)(?=\s*\w)|_?\{\s*(\w+)\s*\}|\[\s*\])?")
"""A reduction's index in another form: `sum(j) x[j]`, `sum_{j} x[j]`, or `sum[] x`."""
_INDEX = re.compile(r"\s*\[\s*(\w+)\s*\]")
_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")
_ENDS = frozenset([*";,/+-%<>=", "<=", ">=", "==", "!="])
"""Tokens that end the factors of a reduction."""
_READ = re.compile(r"(\w+)\s*\[([^\[\]]*)\]")
_RECEIVER = re.compile(r"\w+(?:\[[^\[\]\n]{0,80}\])?\Z")
"""The object of a method call, before its point: `x[i]` of `x[i].exp()`."""
_IN_PARENTHESES = re.compile(r"\(([^()\n]{0,80})\)")
_OUTER_COMMA = re.compile(r",\s*(?![^\[\]]*\])")
"""A comma between arguments, not between subscripts."""
_LONGEST = 100
"""How many characters before its point the object of a method call is looked for."""
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_FLOAT = re.compile(r"\b(?!0[xX])\d+(?:\.\d|[eE]|\.\B)|\B\.\d")
"""The beginning of a float literal, another language's included: `1.5`, `1e5`, `1.`, `.5`."""
_CASTS = frozenset({"f32", "i32", "u32"})
_TARGET = re.compile(r"(?:let\s+)?\w+\s*(\[[^\[\]]*\])?\s*=.*", re.DOTALL)
"""A statement up to some place, with the brackets of its left side: `let m[i] = 2.0 *`."""


# Names and their types


def name_and_type(mistake: Mistake) -> Diagnostic | None:
    """Recognise a parameter without a name or type: `-> f32[n]`, `float x`."""
    before = mistake.last
    what, example = _declared(mistake)
    span = mistake.lexeme_span(before)
    remedy = f"Write '{before.text}: {example}'."
    if OWN_TYPE.fullmatch(before.text) or before.text in TYPES:
        match = _TYPE_FIRST.match(mistake.text_from(before))
        assert match is not None
        pointed = "[n]" if "*" in match[3] and mistake.item != "fn" else ""
        type_ = f"{_ours(match[1])}{match[2] or match[5] or pointed}"
        if what == "An output" and type_ == match[1] == _ours(match[1]):
            type_ += "[]"
        remedy = f"Write '{match[4] or 'y'}: {type_}'."
        span = Span(span.source, span.start, span.start + len(match[0].rstrip()))
    return faults.NameAndType(span=span, what=what, remedy=remedy)


def _declared(mistake: Mistake) -> tuple[str, str]:
    """Return the kind of declaration, and an example of its type."""
    if mistake.text_before(2) == "const":
        return "A constant", _type_of_constant(mistake)
    if mistake.bracket == "{":
        return "A field", "f32"
    if mistake.opening is None:
        return "An output", "f32[n]"
    return "A parameter", "f32" if mistake.item == "fn" else "f32[n]"


def _type_of_constant(mistake: Mistake) -> str:
    """Return the type of a constant's value, guessed from the text after the '='."""
    value = mistake.source.text[mistake.span.end :].split(";", 1)[0].split("\n", 1)[0]
    words = _WORD.findall(value)
    if {"true", "false"} & {*words}:
        return "bool"
    if _FLOAT.search(value):
        return "f32"
    for word in words:
        declared = re.search(rf"\bconst\s+{word}\s*:\s*(\w+)", mistake.source.text)
        if word in _CASTS or declared:
            return declared[1] if declared else word
    return "f32" if words else "u32" if "0x" in value else "i32"


def _ours(name: str) -> str:
    return TYPES.get(name, name)


def foreign_type(mistake: Mistake) -> Diagnostic | None:
    """Recognise another language's type: `vec3<f32>`, `*f32`, `&mut [f32]`."""
    before = mistake.last
    if mistake.text_before(2) == ":" and mistake.kind in {"STAR", "NAME"}:
        return _pointer_or_long_type(mistake, before)
    after_type = "ASSIGN" in mistake.accepts or "COMMA" in mistake.accepts
    if mistake.kind == "LESS" and after_type and not mistake.follows_value:
        return _generic_type(mistake, before)
    wants_type = before.text == ":" and mistake.accepts_only("NAME")
    if wants_type and mistake.kind in {"STAR", "AMPERSAND", "OPEN_BRACKET"}:
        first = Lexeme(mistake.span.text, mistake.span.start)
        fixed = _FIXED.match(mistake.text_from(first))
        if fixed is not None and mistake.item == "struct":
            return _foreign_type(mistake, first, f"{_ours(fixed[1])}[{fixed[2]}]")
        axes = _AXES_FIRST.match(mistake.text_from(first))
        instead = _axes_last(axes[1], axes[2]) if axes else ""
        return _foreign_type(mistake, first, instead)
    return None


def _generic_type(mistake: Mistake, name: Lexeme) -> Diagnostic:
    """`vec3<f32>`, `array<f32, 4>`, `atomic<u32>`."""
    found = _TYPE.match(mistake.text_from(name))
    assert found is not None, "nothing is enough"
    instead = without_generics(found[0].rstrip(), _lengths(mistake))
    if not _PLAIN_TYPE.fullmatch(instead):
        return _foreign_type(mistake, name, "")
    if "atomic" not in found[0]:
        return _foreign_type(mistake, name, instead)
    if mistake.item == "kernel" and instead.isalnum():
        instead += "[]"
    why = ": there are no atomics, for one invocation writes each element"
    return _foreign_type(mistake, name, instead, why)


def _lengths(mistake: Mistake) -> str:
    """Return an example of an array's length: a number in a struct, else a dim."""
    return "[4]" if mistake.item == "struct" else "[n]"


def _pointer_or_long_type(mistake: Mistake, before: Lexeme) -> Diagnostic | None:
    """`x: f32*` and `x: unsigned int[n]`."""
    ours = _ours(before.text)
    if not OWN_TYPE.fullmatch(ours) or mistake.starts_line:
        return None
    if mistake.kind == "STAR":
        return _foreign_type(mistake, before, f"{ours}{_lengths(mistake)}")
    if mistake.span.text not in TYPES:
        return None
    axes = _AXES.match(mistake.source.text, mistake.span.end)
    return _foreign_type(mistake, before, f"{ours}{axes[0] if axes else ''}")


def _axes_last(axes: str, element: str) -> str:
    """`[m][n]f32` as `f32[m, n]`."""
    names = [name or "n" for name in axes[1:-1].replace(" ", "").split("][")]
    return f"{_ours(element)}[{', '.join(names)}]"


def generic_call(mistake: Mistake) -> Diagnostic | None:
    """Recognise a call with type arguments: `vec3<f32>(x)`, `bitcast<u32>(x)`."""
    name, element = mistake.preceding[-3:-2], mistake.text_before(1)
    is_type = OWN_TYPE.fullmatch(_ours(element))
    is_call = mistake.kind == "GREATER" and mistake.text_before(2) == "<" and is_type
    if not is_call or "AND" not in mistake.accepts:
        return None
    span = mistake.lexeme_span(name[0]).to(mistake.span)
    if name[0].text in {"bitcast", "as_type"}:
        instead = (
            f"'{_ours(element)}(x)' to convert a value: bits can't be reinterpreted"
        )
        return faults.ForeignSpelling(
            span=mistake.lexeme_span(name[0]), found=name[0].text, instead=instead
        )
    is_vector = re.fullmatch(r"vec[234]|mat[234]x[234]", name[0].text)
    instead = without_generics(span.text) if is_vector else _ours(element)
    return faults.ForeignType(span=span, found=span.text, instead=instead)


def _foreign_type(
    mistake: Mistake, first: Lexeme, instead: str, why: str = ""
) -> Diagnostic:
    match = _TYPE.match(mistake.text_from(first))
    found = match[0].rstrip() if match else first.text
    end = first.start + len(found)
    span = Span(mistake.source, first.start, end)
    instead = instead or f"f32{_lengths(mistake)}"
    return faults.ForeignType(span=span, found=found, instead=instead, why=why)


def undeclared_value(mistake: Mistake) -> Diagnostic | None:
    """Recognise a declaration as in C: `float t = x[i];`."""
    before = mistake.last
    if mistake.text_before(2) not in {"", ";", "{", "}"}:
        return None
    if before.text not in TYPES and not OWN_TYPE.fullmatch(before.text):
        return None
    span = mistake.lexeme_span(before).to(mistake.span)
    return faults.UndeclaredValue(span=span, name=mistake.span.text)


# Reductions


def foreign_reduction(mistake: Mistake) -> Diagnostic | None:
    """Recognise a reduction that does not exist: `mean[j] x[j]`, `einsum("...")`."""
    if mistake.kind == "STRING":
        return _foreign_reduction(mistake, mistake.preceding[-2])
    named, brackets = mistake.subscripted() or (mistake.last, ())
    # Indices are introduced, as in `[i < 3, j]`: no subscript is compared.
    gives_ranges = len(brackets) > 2 and brackets[2].text in {"<", "<="}
    if (
        named.text in REDUCTIONS
        or gives_ranges
        or _introduces_index(mistake, named, brackets)
    ):
        return _foreign_reduction(mistake, named)
    return None


def _introduces_index(
    mistake: Mistake, named: Lexeme, brackets: tuple[Lexeme, ...]
) -> bool:
    """Whether `xor[i] x[i]` has an unknown name, and an index that is not on the left."""
    text = mistake.source.text
    if closest(named.text, REDUCE_KINDS):
        return False
    if not named.text.isidentifier():
        return False
    declared = re.search(rf"\b(?:let\s+{named.text}\b|{named.text}\s*:)", text)
    names = {lexeme.text for lexeme in brackets[1:-1]} - {","}
    return (
        declared is None
        and bool(names)
        and all(name.isidentifier() for name in names)
        and not names & left_indices(mistake)
    )


def _foreign_reduction(mistake: Mistake, named: Lexeme) -> Diagnostic:
    return faults.ForeignReduction(
        span=mistake.lexeme_span(named),
        instead=(
            _reduced_by(mistake, named).by(named.text)
            if named.text in REDUCTIONS
            else "it with these"
        ),
    )


def _reduced_by(mistake: Mistake, named: Lexeme) -> Reduced:
    """Return the parts of a reduction such as `mean[j] x[i, j]`, in the user's words."""
    text = mistake.source.text
    match = _INDEX.match(text, named.end)
    value = " ".join(_factors(text, match.end()).split()) if match else ""
    if match is None or not value:
        return Reduced()
    index = match[1]
    begin = max(text.rfind(sign, 0, named.start) for sign in ";{}") + 1
    target = _TARGET.fullmatch(text[begin : named.start].strip())
    left = (target[1] or "") if target else ""
    return Reduced(index, value, _length(text[: named.start], index, value), left)


def _factors(text: str, begin: int) -> str:
    """Return the text that a reduction at `begin` would reduce."""
    depth, end = 0, begin
    for lexeme in lexemes(text, begin):
        depth -= lexeme.text in _CLOSERS
        if depth < 0 or (depth == 0 and lexeme.text in _ENDS):
            break
        depth += lexeme.text in _OPENERS
        end = lexeme.end
    return text[begin:end]


def _length(before: str, index: str, value: str) -> str:
    """Return the length of the axis that an index subscripts, by the tensor's declaration."""
    for read in _READ.finditer(value):
        subscripts = [part.strip() for part in read[2].split(",")]
        declaration = rf"\b{read[1]}\s*:\s*\w+\s*\[([^\[\]]*)\]"
        declared = [*re.finditer(declaration, before)][-1:]
        axes = [part.strip() for match in declared for part in match[1].split(",")]
        if index in subscripts and len(axes) == len(subscripts):
            return axes[subscripts.index(index)]
    return "n"


def reduction_form(mistake: Mistake) -> Diagnostic | None:
    """Recognise a reduction without its index: `sum x[j]`, `sum(j) x[j]`, `sum[] x`."""
    named: Lexeme | None = None
    last, before = mistake.text_before(1), mistake.preceding
    subscripted = mistake.kind == "OPEN_BRACE" and last.endswith("_")
    if subscripted or mistake.accepts_only("OPEN_PAREN", "OPEN_BRACKET"):
        named = mistake.before
    elif mistake.kind == "CLOSE_BRACKET" and last == "[" and len(before) > 1:
        named = before[-2]
    elif mistake.kind in VALUE_STARTS and last == ")" and mistake.follows_value:
        opened = before[-4:-3] if mistake.text_before(3) == "(" else ()
        named = next(iter(opened), None)
    if named is None or not _REDUCTION.fullmatch(named.text):
        return None
    name = named.text.rstrip("_")
    return faults.ReductionForm(
        span=mistake.lexeme_span(named),
        name=name,
        example=f"{name}{_reduced_in_brackets(mistake, named)}",
    )


def _reduced_in_brackets(mistake: Mistake, named: Lexeme) -> str:
    """Return `[j] x[i, j]`: the index that is named, or one that is not on the left."""
    text = mistake.source.text
    match = _NAMED_INDEX.match(text, named.end)
    assert match is not None, "nothing is enough"
    value = " ".join(_factors(text, match.end()).split())
    left = left_indices(mistake)
    read = [part.strip() for m in _READ.finditer(value) for part in m[2].split(",")]
    bare = (part for part in read if part.isidentifier() and part not in left)
    free = next(name for name in "jikpq" if name not in left)
    index = next(filter(None, match.groups()), "") or next(bare, free)
    return f"[{index}] {value or f'x[{index}]'}"


# Subscripts and arguments


def separate_subscripts(mistake: Mistake) -> Diagnostic | None:
    """Recognise subscripts in separate brackets: `z[i][j]`, `f32[n][m]`."""
    starts = [x.start for x in mistake.preceding if x.text == "["]
    match = _BRACKETS.search(mistake.source.text, starts[-1]) if starts else None
    name = mistake.text_before(2 + [x.text for x in mistake.preceding][::-1].index("["))
    joined = f"{name}[{match[1]}, {match[2]}]" if match else f"{name}[i, j]"
    return faults.SeparateSubscripts(span=mistake.span, joined=joined)


def named_argument(mistake: Mistake) -> Diagnostic | None:
    """Recognise an argument by name: `max(x, axis=1)`."""
    name, called = mistake.last, mistake.before_opening(1)
    if not _CALLED.fullmatch(called) or called in {"if", "and", "or", "not"}:
        return None
    remedy = "Write the value alone, in its place."
    if name.text in {"axis", "axes", "dim", "dims", "keepdims"}:
        remedy = "To reduce over an axis, name its index: 'sum[j] x[i, j]'."
    return faults.NamedArgument(span=mistake.lexeme_span(name), remedy=remedy)


def method_call(mistake: Mistake) -> Diagnostic | None:
    """Recognise a method or module call: `x[i].exp()`, `np.exp(x[i])`, `x.sum()`."""
    name = mistake.last
    given = _arguments(mistake)
    if name.text in FUNCTIONS:
        instead = called(name.text, given)
    elif name.text in BUILTINS or f"fn {name.text}(" in mistake.source.text:
        instead = f"'{name.text}({', '.join(given) or 'x'})'"
    else:
        instead = "an equation of elements: what it says of one, it says of all"
    compares = len(given) == 2 and "=" not in given[1]
    compares &= name.text in {"max", "min"}
    if _REDUCTION.fullmatch(name.text) and not compares:
        return _reducing_method(mistake, name)
    if name.text in REDUCTIONS:
        instead = Reduced().by(name.text)
    return faults.MethodCall(span=mistake.lexeme_span(name), instead=instead)


def _arguments(mistake: Mistake) -> list[str]:
    """Return the texts of a method call's object and arguments."""
    text, at = mistake.source.text, mistake.preceding[-2].start
    match = _RECEIVER.search(text, max(0, at - _LONGEST), at)
    receiver = match[0] if match and match[0] not in MODULES | {"Math"} else ""
    given = _IN_PARENTHESES.match(text, mistake.span.start)
    arguments = " ".join(given[1].split()) if given else ""
    return [*filter(None, (receiver, *_OUTER_COMMA.split(arguments)))]


def _reducing_method(mistake: Mistake, name: Lexeme) -> Diagnostic:
    """Report `np.max(x)` or `x.max()`, whose owner may be a tensor."""
    owner = mistake.text_before(3)
    tensor = "x" if owner in VALUES or not owner.isidentifier() else owner
    instead = f"'{name.text}[i] {tensor}[i]'"
    return faults.MethodCall(span=mistake.lexeme_span(name), instead=instead)


def division_comment(mistake: Mistake) -> Diagnostic | None:
    """Recognise `//` as a division, which begins a comment: `x[i // 2]`."""
    end = mistake.last.end
    rest = mistake.source.text[end:].split("\n", 1)[0]
    match = _DIVIDED.match(rest)
    if match is None or mistake.last.text in {";", "{", "}", ","}:
        return None
    start = end + match.start(1)
    return faults.DivisionComment(span=Span(mistake.source, start, start + 2))
