"""Diagnostics of schedules: codes KG06xx."""

from __future__ import annotations

from kerngen.source.counted import counted
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class UnknownKernel(Diagnostic):
    CODE = "KG0601"
    MESSAGE = "There is no kernel '{name}' to schedule."
    HELP = "{remedy}"
    name: str
    remedy: str


class NothingMatches(Diagnostic):
    """A pattern that matches no kernel, such as `matmull_*`."""

    CODE = "KG0612"
    MESSAGE = "There is no kernel that '{pattern}' matches."
    HELP = "{remedy}"
    pattern: str
    remedy: str


class TooManyMatches(Diagnostic):
    CODE = "KG0614"
    MESSAGE = (
        "With this pattern, the patterns in this file match {count} kernels in all, "
        "and the limit is {limit}."
    )
    HELP = (
        "Name the kernels that this schedule is for, or put kernels of one kind, with "
        "their schedules, into a file of their own."
    )
    count: int
    limit: int


class UnknownStrategy(Diagnostic):
    CODE = "KG0602"
    MESSAGE = "There is no strategy '{name}'."
    LABEL = "the strategies are {known}"
    HELP = (
        "Did you mean '{suggestion}'?",
        (
            "Name one of them: 'generic' suits every stage; without a schedule, kerngen "
            "picks one."
        ),
    )
    name: str
    known: str
    suggestion: str


class UnknownOption(Diagnostic):
    CODE = "KG0603"
    MESSAGE = "The strategy '{strategy}' has no option '{name}'."
    LABEL = "{known}"
    HELP = (
        "{instead}",
        "Did you mean '{suggestion}'?",
        "Remove it, or name another strategy.",
    )
    strategy: str
    name: str
    options: tuple[str, ...]
    suggestion: str
    instead: str

    @property
    def known(self) -> str:
        """The options that the strategy has."""
        listed = ", ".join(f"'{option}'" for option in self.options)
        if len(self.options) == 1:
            return f"its only option is {listed}"
        return f"its options are {listed}" if listed else "it has no options"


class OptionCount(Diagnostic):
    CODE = "KG0604"
    MESSAGE = "'{name}' takes {wanted}, got {actual}."
    HELP = "Write '{usage}'."
    name: str
    expected: int
    actual: int
    usage: str

    @property
    def wanted(self) -> str:
        """The expected number of values, in words."""
        return counted(self.expected, "value")


class OptionValue(Diagnostic):
    CODE = "KG0605"
    MESSAGE = "'{name}' can't be {value}: it is {accepted}."
    HELP = "Write '{usage}', each {accepted}: the nearest is '{nearest}'."
    name: str
    value: int
    accepted: str
    usage: str
    nearest: str


class RepeatedOption(Diagnostic):
    CODE = "KG0606"
    MESSAGE = "The option '{name}' is given twice."
    HELP = "Keep one of them."
    RELATED = {"other": "first here"}
    other: Span
    name: str


class GuardReads(Diagnostic):
    CODE = "KG0607"
    MESSAGE = "A guard can't use {what}."
    HELP = (
        "A guard is made of dims, integer scalars, literals, "
        "'adapter.workgroup_bytes', '.invocations', '.subgroups', '.f16', arithmetic "
        "and comparisons."
    )
    RELATED = {"declared": "declared here"}
    declared: Span | None = None
    what: str


class GuardOfSome(Diagnostic):
    CODE = "KG0613"
    MESSAGE = "A guard of {kernels} can't use '{name}'."
    LABEL = "no dim or integer scalar there"
    HELP = "Write a schedule for {kernels} apart, without '{name}'."
    name: str
    kernels: str


class AmbiguousInGuard(Diagnostic):
    CODE = "KG0611"
    MESSAGE = "'{name}' is {kind} of '{kernel}', and a constant here."
    HELP = "Rename the constant."
    RELATED = {"constant": "the constant", "value": "{kind} of '{kernel}'"}
    name: str
    kind: str
    kernel: str
    value: Span
    constant: Span


class GuardType(Diagnostic):
    CODE = "KG0608"
    MESSAGE = "A guard is true or false, but this is a number."
    HELP = "Compare it with something: '{example}'."
    example: str


class UnknownAdapterFact(Diagnostic):
    CODE = "KG0609"
    MESSAGE = "A guard can't ask for 'adapter.{name}'."
    LABEL = "it can ask for {known}"
    HELP = (
        "Did you mean 'adapter.{suggestion}'?",
        "Ask for one of these, as in 'adapter.f16'.",
    )
    name: str
    known: str
    suggestion: str


class UnreachableSchedule(Diagnostic):
    CODE = "KG0610"
    MESSAGE = "This schedule is never used{for_some}."
    HELP = "Move it up, or give the earlier one a narrower guard."
    RELATED = {"other": "this one comes first for all the same calls"}
    other: Span
    kernels: str = ""

    @property
    def for_some(self) -> str:
        """The kernels of the schedule to which that applies, unless to all."""
        return f" for {self.kernels}" if self.kernels else ""
