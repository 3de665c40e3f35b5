"""Diagnostics of schedules: codes KG06xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class UnknownKernel(Diagnostic, code="KG0601"):
    MESSAGE = "There is no kernel '{text}' to schedule."
    remedy: str


class NothingMatches(Diagnostic, code="KG0612"):
    MESSAGE = "There is no kernel that '{pattern}' matches."
    pattern: str
    remedy: str


class TooManyMatches(Diagnostic, code="KG0614"):
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


class UnknownStrategy(Diagnostic, code="KG0602"):
    MESSAGE = "There is no strategy '{text}'."
    LABEL = "the strategies are {known}"
    HELP = (
        "Did you mean '{suggestion}'?",
        (
            "Name one of them: 'generic' suits every stage; without a schedule, kerngen "
            "picks one."
        ),
    )
    known: tuple[str, ...]
    suggestion: str


class UnknownOption(Diagnostic, code="KG0603"):
    MESSAGE = "The strategy '{strategy}' has no option '{text}'."
    LABEL = "{known}"
    HELP = (
        "{instead}",
        "Did you mean '{suggestion}'?",
        "Remove it, or name another strategy.",
    )
    strategy: str
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


class OptionCount(Diagnostic, code="KG0604"):
    MESSAGE = "'{name}' takes {expected:value}, got {actual}."
    HELP = "Write '{usage}'."
    name: str
    expected: int
    actual: int
    usage: str


class OptionValue(Diagnostic, code="KG0605"):
    MESSAGE = "'{name}' can't be {value}: it is {accepted}."
    HELP = "Write '{usage}', each {accepted}: the nearest is '{nearest}'."
    name: str
    value: int
    accepted: str
    usage: str
    nearest: str


class RepeatedOption(Diagnostic, code="KG0606"):
    MESSAGE = "The option '{text}' is given twice."
    HELP = "Keep one of them."
    other: Span = related("first here")


class GuardReads(Diagnostic, code="KG0607"):
    MESSAGE = "A guard can't use {what}."
    HELP = (
        "A guard is made of dims, integer scalars, literals, "
        "'adapter.workgroup_bytes', '.invocations', '.subgroups', '.f16', "
        "'.tensor_bytes', arithmetic and comparisons."
    )
    declared: Span | None = related("declared here", default=None)
    what: str


class GuardOfSome(Diagnostic, code="KG0613"):
    MESSAGE = "A guard of {kernels} can't use '{text}'."
    LABEL = "no dim or integer scalar there"
    HELP = "Write a schedule for {kernels} apart, without '{text}'."
    kernels: str


class AmbiguousInGuard(Diagnostic, code="KG0611"):
    MESSAGE = "'{text}' is {kind} of '{kernel}', and a constant here."
    HELP = "Rename the constant."
    kind: str
    kernel: str
    constant: Span = related("the constant")
    value: Span = related("{kind} of '{kernel}'")


class GuardType(Diagnostic, code="KG0608"):
    MESSAGE = "A guard is true or false, but this is a number."
    HELP = "Compare it with something: '{example}'."
    example: str


class UnknownAdapterFact(Diagnostic, code="KG0609"):
    MESSAGE = "A guard can't ask for 'adapter.{text}'."
    LABEL = "it can ask for {known}"
    HELP = (
        "Did you mean 'adapter.{suggestion}'?",
        "Ask for one of these, as in 'adapter.f16'.",
    )
    known: tuple[str, ...]
    suggestion: str


class UnreachableSchedule(Diagnostic, code="KG0610"):
    MESSAGE = "This schedule is never used{for_some}."
    HELP = "Move it up, or give the earlier one a narrower guard."
    other: Span = related("this one comes first for all the same calls")
    kernels: str = ""

    @property
    def for_some(self) -> str:
        """The kernels of the schedule to which that applies, unless to all."""
        return f" for {self.kernels}" if self.kernels else ""
