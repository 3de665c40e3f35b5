"""What can be wrong with schedules: codes KG06xx."""

from __future__ import annotations

from kerngen.source.counted import counted
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class UnknownKernel(
    Diagnostic,
    code="KG0601",
    message="There is no kernel '{name}' to schedule.",
    help="{remedy}",
):
    name: str
    remedy: str


class NothingMatches(
    Diagnostic,
    code="KG0612",
    message="There is no kernel that '{pattern}' matches.",
    help="{remedy}",
):
    """A pattern that is the name of no kernel, such as `matmull_*`."""

    pattern: str
    remedy: str


class TooManyMatches(
    Diagnostic,
    code="KG0614",
    message=(
        "With this pattern, the patterns in this file match {count} kernels in all, "
        "and the limit is {limit}."
    ),
    help=(
        "Name the kernels that this schedule is for, or put kernels of one kind, with "
        "their schedules, into a file of their own."
    ),
):
    count: int
    limit: int


class UnknownStrategy(
    Diagnostic,
    code="KG0602",
    message="There is no strategy '{name}'.",
    label="the strategies are {known}",
    help=(
        "Did you mean '{suggestion}'?",
        (
            "Name one of them: 'generic' suits every stage; without a schedule, kerngen "
            "picks one."
        ),
    ),
):
    name: str
    known: str
    suggestion: str


class UnknownOption(
    Diagnostic,
    code="KG0603",
    message="The strategy '{strategy}' has no option '{name}'.",
    label="{known}",
    help=(
        "{instead}",
        "Did you mean '{suggestion}'?",
        "Remove it, or name another strategy.",
    ),
):
    strategy: str
    name: str
    options: tuple[str, ...]
    suggestion: str
    instead: str

    @property
    def known(self) -> str:
        """Which options the strategy has."""
        listed = ", ".join(f"'{option}'" for option in self.options)
        if len(self.options) == 1:
            return f"its only option is {listed}"
        return f"its options are {listed}" if listed else "it has no options"


class OptionCount(
    Diagnostic,
    code="KG0604",
    message="'{name}' takes {wanted}, got {actual}.",
    help="Write '{usage}'.",
):
    name: str
    expected: int
    actual: int
    usage: str

    @property
    def wanted(self) -> str:
        """The number of values, in words."""
        return counted(self.expected, "value")


class OptionValue(
    Diagnostic,
    code="KG0605",
    message="'{name}' can't be {value}: it is {accepted}.",
    help="Write '{usage}', each {accepted}: the nearest is '{nearest}'.",
):
    name: str
    value: int
    accepted: str
    usage: str
    nearest: str


class RepeatedOption(
    Diagnostic,
    code="KG0606",
    message="The option '{name}' is given twice.",
    help="Keep one of them.",
    related={"other": "first here"},
):
    other: Span
    name: str


class GuardReads(
    Diagnostic,
    code="KG0607",
    message="A guard can't use {what}.",
    help=(
        "A guard is made of dims, integer scalars, literals, "
        "'adapter.workgroup_bytes', '.invocations', '.subgroups', '.f16', arithmetic "
        "and comparisons."
    ),
    related={"declared": "declared here"},
):
    declared: Span | None = None
    what: str


class GuardOfSome(
    Diagnostic,
    code="KG0613",
    message="A guard of {kernels} can't use '{name}'.",
    label="no dim or integer scalar there",
    help="Write a schedule for {kernels} apart, without '{name}'.",
):
    name: str
    kernels: str


class AmbiguousInGuard(
    Diagnostic,
    code="KG0611",
    message="'{name}' is {kind} of '{kernel}', and a constant here.",
    help="Rename the constant.",
    related={"constant": "the constant", "value": "{kind} of '{kernel}'"},
):
    name: str
    kind: str
    kernel: str
    value: Span
    constant: Span


class GuardType(
    Diagnostic,
    code="KG0608",
    message="A guard is true or false, but this is a number.",
    help="Compare it with something: '{example}'.",
):
    example: str


class UnknownAdapterFact(
    Diagnostic,
    code="KG0609",
    message="A guard can't ask for 'adapter.{name}'.",
    label="it can ask for {known}",
    help=(
        "Did you mean 'adapter.{suggestion}'?",
        "Ask for one of these, as in 'adapter.f16'.",
    ),
):
    name: str
    known: str
    suggestion: str


class UnreachableSchedule(
    Diagnostic,
    code="KG0610",
    message="This schedule is never used{for_some}.",
    help="Move it up, or give the earlier one a narrower guard.",
    related={"other": "this one comes first for all the same calls"},
):
    other: Span
    kernels: str = ""

    @property
    def for_some(self) -> str:
        """Of which of its kernels that is so, if not of all."""
        return f" for {self.kernels}" if self.kernels else ""
