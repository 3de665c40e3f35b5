"""Find forms: lines that several kernels, stages or cases have, but for names and sizes.

    form map | $map, $a, $b, $c, $n
      aligned | when $n % 4 == 0 | run $map($a, $b, $c*) | groups ceil_div($n, 1024)
      edge | run $map:edge($a, $b, $c*) | groups ceil_div($n, 256)

    kernel add ...
        use map | add.map | a | b | c | n

What saves most lines becomes a form first.  Forms are searched for others, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, pairwise
from typing import Final, TypeAlias, final

from kerngen.plan.alike import NotAlikeError, RowTemplate, shape
from kerngen.plan.rows import Piece, ReplaceableName, Row

_LEAST_LINES: Final = 4
"""The fewest lines of a form: one of fewer is no easier to read than the lines."""
_LEAST_SAVED: Final = 6
"""The fewest lines that a form must save: to read it, and the lines that use it, is work."""


@final
@dataclass(frozen=True, slots=True)
class Form:
    """A form: rows with parameters such as `$n`, in place of which `use` rows have its name."""

    name: str
    parameters: tuple[str, ...]
    rows: Sequence[Row]


Forms: TypeAlias = Mapping[str, Form]
Bodies: TypeAlias = Sequence[Sequence[Row]]


def with_forms(bodies: Bodies) -> tuple[Forms, Bodies]:
    """Factor out the forms of a module: runs of plan lines that kernels have in common.

    `bodies` has the lines of each kernel's plan.  Return the forms by name, and the bodies
    with a use of a form in place of each run.
    """
    # Find forms until none saves enough.
    finder = _Finder()
    for body in bodies:
        finder.add(body)
    while finder.find():
        pass
    # The finder's texts: those of kernels, then those of forms, in both of which uses of
    # forms have replaced lines.
    kernels = [text.rows for text in finder.texts[: len(bodies)]]
    texts = zip(finder.forms, finder.texts[len(bodies) :], strict=True)
    forms = {form.name: replace(form, rows=text.rows) for form, text in texts}
    names = _names(form for rows in kernels for form in used_in(rows, forms))
    return (
        {
            name: Form(name, forms[old].parameters, _renamed(forms[old].rows, names))
            for old, name in names.items()
        },
        [_renamed(rows, names) for rows in kernels],
    )


def used_in(rows: Iterable[Row], forms: Forms) -> Iterator[Form]:
    """Yield the forms that rows use, each after the forms that its own rows use.

    A form that is used more than once comes more than once.
    """
    for row in rows:
        if name := _used(row):
            yield from used_in(forms[name].rows, forms)
            yield forms[name]


def _used(row: Row) -> str:
    """Return the name of the form that a row uses, if it uses one."""
    word, _, name = str(row.pieces[0]).partition(" ")
    return name if word == "use" else ""


def _renamed(rows: Iterable[Row], names: Mapping[str, str]) -> list[Row]:
    return [
        replace(row, pieces=(f"use {names[used]}", *row.pieces[1:])) if used else row
        for row in rows
        for used in [_used(row)]
    ]


def _names(forms: Iterable[Form]) -> dict[str, str]:
    """Return the final names of forms, by their numbers from when they were found.

    A name is the strategy of the first shader, with a number in the order of the file:
    `map`, `map_2`.
    """
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for form in forms:
        if form.name not in names:
            strategy = _strategy(form.rows)
            counts[strategy] += 1
            again = f"_{counts[strategy]}" if counts[strategy] > 1 else ""
            names[form.name] = f"{strategy}{again}"
    return names


def _strategy(rows: Iterable[Row]) -> str:
    """Return the strategy of the first shader in rows: `map` for its parameter `$map_2`."""
    shaders = (
        name for row in rows for run, name in pairwise(row.pieces) if run == "run "
    )
    first = next((x.text for x in shaders if isinstance(x, ReplaceableName)), "$choice")
    return first.removeprefix("$").partition("_")[0]


# Which lines become forms: units of the same shape, those first that save most lines

_Key: TypeAlias = tuple[tuple[int, int], ...]
"""The indentation and shape of each line of a unit."""
_Unit: TypeAlias = tuple[int, int]
"""Lines that may become a form, as a range: the first one, and the one behind the last."""


@final
@dataclass(slots=True)
class _Text:
    """The rows of a kernel or form, their shapes by number, and the units in them."""

    rows: list[Row]
    shapes: list[int]
    units: Sequence[tuple[_Key, _Unit]] = ()

    def find_units(self) -> None:
        """Find the units of rows that have changed."""
        depths = [row.depth for row in self.rows]
        lines = [*zip(depths, self.shapes, strict=True)]
        self.units = [
            (tuple((depth - depths[a], shape) for depth, shape in lines[a:b]), (a, b))
            for a, b in _units(self.rows, 0, len(self.rows))
        ]


_Members: TypeAlias = list[tuple[_Text, _Unit]]


@final
@dataclass(slots=True)
class _Finder:
    """Finds one form after the other; the texts of forms are behind those of kernels.

    `_shapes` numbers the shapes of rows, so that they compare fast; `_refused` has the
    groups that would take too many parameters.
    """

    texts: list[_Text] = field(default_factory=list[_Text])
    forms: list[Form] = field(default_factory=list[Form])
    _shapes: dict[object, int] = field(default_factory=dict[object, int])
    _refused: set[tuple[_Key, int]] = field(default_factory=set[tuple["_Key", int]])

    def find(self) -> bool:
        """Replace the lines that save most by a form; return whether a form was made."""
        groups = self._groups()
        saved = {key: _saved(len(key), len(groups[key])) for key in groups}
        for key in sorted(groups, key=lambda key: -saved[key]):
            if saved[key] < _LEAST_SAVED:
                return False
            if (key, len(groups[key])) in self._refused:
                continue
            try:
                self._replace(groups[key])
            except NotAlikeError:
                self._refused.add((key, len(groups[key])))
            else:
                return True
        return False

    def _groups(self) -> Mapping[_Key, _Members]:
        """Return the units of the same shapes, none of which overlap."""
        groups: dict[_Key, _Members] = {}
        for text in self.texts:
            for key, unit in text.units:
                members = groups.setdefault(key, [])
                # Units of a text come in order: only the last member may overlap.
                if members and members[-1][0] is text and members[-1][1][1] > unit[0]:
                    continue
                members.append((text, unit))
        return groups

    def add(self, rows: Sequence[Row]) -> None:
        """Add the rows of a kernel or form."""
        text = _Text([*rows], [*map(self._shape, rows)])
        text.find_units()
        self.texts.append(text)

    def _shape(self, row: Row) -> int:
        return self._shapes.setdefault(tuple(map(shape, row.pieces)), len(self._shapes))

    def _replace(self, members: _Members) -> None:
        """Make a form of the lines of its members, and replace these by lines that use it."""
        template = RowTemplate()
        rows = template.rows([text.rows[a:b] for text, (a, b) in members])
        form = Form(str(len(self.forms)), template.names, rows)
        # From the last to the first, so that those before keep their places in a text.
        for number, (text, (start, end)) in reversed([*enumerate(members)]):
            pieces: list[Piece] = [f"use {form.name}"]
            for argument in template.arguments(number):
                pieces += (" | ", argument)
            row = Row(text.rows[start].depth, tuple(pieces))
            text.rows[start:end], text.shapes[start:end] = [row], [self._shape(row)]
        for text in {id(text): text for text, _ in members}.values():
            text.find_units()
        self.forms.append(form)
        self.add(rows)


def _saved(lines: int, members: int) -> int:
    """Return how many lines a form of `lines` lines saves, with so many members.

    Without it there are members * lines; with it one line for each member, its own lines, a
    head and a blank one.
    """
    return (members - 1) * (lines - 1) - 3


def _units(rows: Sequence[Row], start: int, end: int) -> Iterator[_Unit]:
    """Yield the units in a range of lines, at all depths.

    They are the whole, each line with the lines indented below it, and runs of neighbouring
    dispatches.
    """
    if end - start < _LEAST_LINES:
        return
    yield start, end
    heads = [at for at in range(start, end) if rows[at].depth == rows[start].depth]
    for head, behind in pairwise([*heads, end]):
        if _LEAST_LINES <= behind - head < end - start:
            yield head, behind
        yield from _units(rows, head + 1, behind)
    for is_run, group in groupby(heads, lambda at: rows[at].pieces[0] == "run "):
        if is_run:
            yield from _windows([*group], end - start)


def _windows(lines: Sequence[int], whole: int) -> Iterator[_Unit]:
    """Yield all runs within neighbouring dispatches, except for the one of `whole` lines."""
    for start, end in combinations(range(len(lines) + 1), 2):
        if _LEAST_LINES <= end - start < whole:
            yield lines[start], lines[end - 1] + 1
