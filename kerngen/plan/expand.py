"""Forms in plan files: lines with parameters, which other lines use.

    form map | $c, $map, $a, $n
      let $s1 = ceil_div($n, 1024)
      aligned | when $n % 4 == 0 | run $map($a, $c*) | groups $s1
      ...
        use map | y | relu.map | x | m * n

The `use` is read as the lines of the form, with each parameter replaced by an argument.  An
argument of several words is a size: it gets a name of its own, as the form's `let`s do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, final

from kerngen.plan.lines import PlanLine
from kerngen.plan.scope import PlanNames

MOST_LINES: Final = 10_000
"""The most lines of a kernel with forms expanded; the longest standard kernel has 400.

Each form may use others twice, so that a short file could become endless lines.
"""

_PARAMETER: Final = re.compile(r"\$(\w+)")
_LET: Final = re.compile(r"let \$(\w+) = (.+)")
_WORD: Final = re.compile(r"[\w.$-]+")


@final
@dataclass(frozen=True, slots=True)
class ParsedForm:
    """A form as it is in the file: its parameters, its sizes from `let`, and its other lines.

    Names of parameters and sizes are without the `$`.  `sizes` maps the name of a size to the
    line of its `let`, for errors, and to the text of its value.
    """

    parameters: tuple[str, ...]
    sizes: Mapping[str, tuple[PlanLine, str]]
    lines: Sequence[PlanLine]


def read_form(
    head: PlanLine, inner: Sequence[PlanLine], known: Mapping[str, ParsedForm]
) -> ParsedForm:
    """Parse a form: its line `head`, and the lines in it, `inner`.

    Lines of `inner` may use only the forms in `known`, which are those above it in the file.
    """
    parameters = tuple(head.fields[-1].split(", "))
    if len(head.fields) != 2 or not all(map(_PARAMETER.fullmatch, parameters)):
        head.refuse("expected 'form NAME | $PARAMETERS'")
    names = tuple(x[1:] for x in parameters)
    # Lines of `let` come first, then steps.
    sizes: dict[str, tuple[PlanLine, str]] = {}
    start = next((at for at, x in enumerate(inner) if not _is_let(x)), len(inner))
    for line in inner[:start]:
        named = _LET.fullmatch(line.fields[0])
        if named is None or len(line.fields) > 1 or named[1] in (*names, *sizes):
            line.refuse("expected 'let $NAME = SIZE', with a new name")
        sizes[named[1]] = line, named[2]
    for line in inner[start:]:
        if _is_use(line):
            _form_of(line, known)
    if start == len(inner):
        head.refuse("nothing is in it")
    return ParsedForm(names, sizes, inner[start:])


def _is_let(line: PlanLine) -> bool:
    return line.fields[0].startswith("let ")


def _is_use(line: PlanLine) -> bool:
    return line.fields[0].startswith("use ")


def _form_of(line: PlanLine, forms: Mapping[str, ParsedForm]) -> ParsedForm:
    """Return the form that a line uses; refuse it unless that takes its arguments."""
    name = line.fields[0].removeprefix("use ")
    if name not in forms:
        line.refuse(f"no form '{name}' is above it")
    form = forms[name]
    if len(line.fields) - 1 != len(form.parameters):
        wanted = ", ".join(form.parameters)
        line.refuse(
            f"expected a field for each of {wanted}, got {len(line.fields) - 1}"
        )
    return form


@final
@dataclass(slots=True)
class Expander:
    """Replaces the `use` lines of a kernel, and adds the sizes that forms name to its scope.

    `lines` collects the resulting lines, those of forms that a form uses included.
    """

    forms: Mapping[str, ParsedForm]
    scope: PlanNames
    lines: list[PlanLine] = field(default_factory=list[PlanLine])
    _uses: int = 0

    def expand(self, lines: Sequence[PlanLine]) -> list[PlanLine]:
        """Add lines to `self.lines`, those of its form for each `use`; return `self.lines`."""
        for line, below in zip_longest(lines, lines[1:]):
            if not _is_use(line):
                self._add(line)
                continue
            if below and below.depth > line.depth:
                below.refuse("unexpected indentation")
            self._expand(line)
        return self.lines

    def _add(self, line: PlanLine) -> None:
        """Add a line that uses no form."""
        if len(self.lines) == MOST_LINES:
            line.refuse(f"forms make more than {MOST_LINES} lines of it")
        self.lines.append(line)

    def _expand(self, line: PlanLine) -> None:
        """Add the lines of the form that a line uses."""
        # A size with a name of its own, `map.3.n`, for the third use of a form in the kernel:
        # a point cannot be in the name of a size that the file declares.
        form = _form_of(line, self.forms)
        self._uses += 1
        own = f"{line.fields[0].removeprefix('use ')}.{self._uses}"
        values: dict[str, str] = {}
        for name, text in zip(form.parameters, line.fields[1:], strict=True):
            values[name] = text if _WORD.fullmatch(text) else f"{own}.{name}"
            if values[name] != text:
                self.scope.sizes[values[name]] = self.scope.size(line, text)
        # In order: a `let` may have parameters, and those before it.
        for name, (let, text) in form.sizes.items():
            size = self.scope.size(let, _filled(let, text, values))
            values[name] = f"{own}.{name}"
            self.scope.sizes[values[name]] = size
        self.expand([_with_values(each, line, values) for each in form.lines])


def _with_values(line: PlanLine, use: PlanLine, values: Mapping[str, str]) -> PlanLine:
    """Return a line of a form with its parameters replaced, indented below its user.

    For errors it has the number of the outermost line that uses it.
    """
    fields = tuple(_filled(line, text, values) for text in line.fields)
    user = use.used_by or use.number
    return PlanLine(line.number, use.depth + line.depth - 1, fields, user)


def _filled(line: PlanLine, text: str, values: Mapping[str, str]) -> str:
    """Return a text with its parameters replaced: `m * $n` with {"n": "k"} is `m * k`."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            line.refuse(f"'{found[0]}' is no parameter of its form")
        return values[found[1]]

    return _PARAMETER.sub(value, text)
