"""What can be wrong with lets that read themselves: codes KG13xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class ReadsItself(
    Diagnostic,
    code="KG1301",
    message="'{text}' is what is being defined here.",
    help=(
        "Read '{name}' at an earlier or later value of one index, such as 't - 1'; or "
        "give the new values another name."
    ),
):
    name: str
    text: str


class BothDirections(
    Diagnostic,
    code="KG1302",
    message="'{name}' reads itself at earlier and at later values of '{index}'.",
    help=(
        "What comes first can't depend on what comes after it: read one side only, or "
        "make two lets, one for each direction."
    ),
    related={"other": "earlier here"},
):
    other: Span
    name: str
    index: str


class DistanceNotLiteral(
    Diagnostic,
    code="KG1303",
    message="The distance at which '{name}' reads itself is no literal.",
    help=(
        "Write a number or a constant, as in '{index} - 1': it decides in which order "
        "elements are computed, and how many are kept."
    ),
):
    name: str
    index: str


class UnguardedBorder(
    Diagnostic,
    code="KG1304",
    message=(
        "Nothing excludes the {border} values of '{index}', where '{read}' is outside."
    ),
    help=(
        "Read it in a branch of its own: 'if {condition} {{ {read} }} else {{ ... }}'."
    ),
):
    index: str
    border: str
    read: str
    condition: str


class NoOrder(
    Diagnostic,
    code="KG1305",
    message=(
        "There is no index along which '{name}' reads only earlier values of itself: "
        "{reads}."
    ),
    help=(
        "All of its reads must be at 't - 1', or some other literal, of the same "
        "index; of a table that is filled along two indices, compute a diagonal per "
        "step."
    ),
):
    name: str
    reads: str
