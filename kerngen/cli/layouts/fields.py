"""Paths of fields that `--explain` takes: `lights[2].color`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import click

from kerngen.layout.types import LayoutField, StructLayout
from kerngen.report.layout_data import LayoutSubject, axes_of, struct_in
from kerngen.source.similar import suggesting

_STEP: Final = re.compile(r"(\w+)((?:\[\d+\])*)")


@final
@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a path: a field, and the element of an array: `lights[2]`."""

    name: str
    places: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Reached:
    """A step resolved in a layout: the struct and the field's number.

    `distance` is the distance in bytes from the field's start to the element that was
    asked for.
    """

    within: StructLayout
    number: int
    distance: int

    @property
    def field(self) -> LayoutField:
        """The field that the step leads to."""
        return self.within.fields[self.number]


def split(path: str) -> list[PathStep]:
    """Parse a path into its steps."""
    steps: list[PathStep] = []
    for part in path.split("."):
        found = _STEP.fullmatch(part.strip())
        if found is None:
            raise click.ClickException(
                f"'{path}' is not a field. Write 'color', 'Light.color' or "
                "'lights[2].color'."
            )
        places = tuple(int(place) for place in re.findall(r"\d+", found[2]))
        steps.append(PathStep(found[1], places))
    return steps


def choose(
    subjects: Sequence[LayoutSubject], steps: list[PathStep]
) -> tuple[LayoutSubject, list[PathStep]]:
    """Return the struct in which a path begins, and the steps inside it.

    `Light.color` begins with the struct's name; `color` alone is a field of one struct.
    """
    first = steps[0].name
    having = [s for s in subjects if any(f.name == first for f in s.layouts[0].fields)]
    named = [s for s in subjects if first in s.names]
    if named and len(steps) > 1:
        return named[0], steps[1:]
    if len(having) == 1:
        return having[0], steps
    if having:
        of = ", ".join(f"'{subject.name}.{first}'" for subject in having)
        raise click.ClickException(f"Several structs have '{first}': {of}.")
    if named:
        raise click.ClickException(
            f"'{first}' is a struct. Say which field of it: "
            f"'{first}.{named[0].layouts[0].fields[0].name}'."
        )
    fields = [f.name for s in subjects for f in s.layouts[0].fields]
    names = [s.name for s in subjects] if len(steps) > 1 else fields
    what = "struct" if len(steps) > 1 else "field"
    raise click.ClickException(
        suggesting(f"There is no {what} '{first}'.", first, names)
    )


def follow(laid: StructLayout, steps: Sequence[PathStep]) -> Iterator[Reached]:
    """Yield each step of a path, resolved in a layout."""
    within = laid
    for position, step in enumerate(steps):
        names = [field.name for field in within.fields]
        if step.name not in names:
            name = within.struct.name if within.struct else within.name
            sentence = f"'{name}' has no field '{step.name}'."
            raise click.ClickException(suggesting(sentence, step.name, names))
        number = names.index(step.name)
        field = within.fields[number]
        distance = _distance(field, step.places)
        yield Reached(within, number, distance)
        inner = struct_in(field.laid)
        if position + 1 < len(steps):
            if inner is None:
                raise click.ClickException(
                    f"'{field.name}' is of type '{field.type.spelling}', which has no "
                    "fields."
                )
            within = inner


def _distance(field: LayoutField, places: tuple[int, ...]) -> int:
    """Return the distance in bytes from the start of a field to an element of it."""
    axes = [*axes_of(field.laid)]
    if len(places) > len(axes):
        raise click.ClickException(
            f"'{field.name}' is of type '{field.type.spelling}', which has fewer axes "
            "than that."
        )
    for place, (length, _) in zip(places, axes, strict=False):
        if place >= length:
            raise click.ClickException(
                f"'{field.name}' has {length} there, so the last one is {length - 1}, "
                f"not {place}."
            )
    return sum(place * stride for place, (_, stride) in zip(places, axes, strict=False))
