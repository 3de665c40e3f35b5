"""What can be wrong with schedules: codes KG06xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Related
from kerngen.source.similar import did_you_mean
from kerngen.source.text import Span
from kerngen.source.worded import Worded, WordedBeside, WordedNear, counted


@final
@dataclass(frozen=True, kw_only=True)
class UnknownKernel(Worded):
    """A schedule of a kernel that neither the file has nor one that it uses."""

    code: ClassVar[str] = "KG0601"
    rule: ClassVar[str] = (
        "A schedule names a kernel of its file, or of one that it uses."
    )
    says: ClassVar[str] = "There is no kernel '{name}' to schedule."
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class NothingMatches(Worded):
    """A pattern that is the name of no kernel, such as `matmull_*`."""

    code: ClassVar[str] = "KG0612"
    rule: ClassVar[str] = "A pattern matches the name of a kernel."
    says: ClassVar[str] = "There is no kernel that '{pattern}' matches."
    advice: ClassVar[str] = "{remedy}"

    pattern: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class TooManyMatches(Worded):
    """Patterns that match more kernels than a file may have schedules for."""

    code: ClassVar[str] = "KG0614"
    rule: ClassVar[str] = "The patterns of a file match no more kernels than the limit."
    says: ClassVar[str] = (
        "With this pattern, the patterns in this file match {count} kernels in all, "
        "and the limit is {limit}."
    )
    advice: ClassVar[str] = (
        "Name the kernels that this schedule is for, or put kernels of one kind, with "
        "their schedules, into a file of their own."
    )

    count: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class UnknownStrategy(Worded):
    """A strategy that does not exist."""

    code: ClassVar[str] = "KG0602"
    rule: ClassVar[str] = "A schedule chooses one of the strategies."
    says: ClassVar[str] = "There is no strategy '{name}'."
    points: ClassVar[str] = "the strategies are {known}"
    advice: ClassVar[str] = "{remedy}"

    name: str
    known: str
    suggestion: str

    @property
    def remedy(self) -> str:
        """What may be meant, or what always works."""
        return did_you_mean(self.suggestion) or (
            "Name one of them: 'generic' suits every stage; without a schedule, "
            "kerngen picks one."
        )


@final
@dataclass(frozen=True, kw_only=True)
class UnknownOption(Worded):
    """An option that the strategy does not have."""

    code: ClassVar[str] = "KG0603"
    rule: ClassVar[str] = "A schedule gives only options that its strategy has."
    says: ClassVar[str] = "The strategy '{strategy}' has no option '{name}'."
    points: ClassVar[str] = "{known}"
    advice: ClassVar[str] = "{remedy}"

    strategy: str
    name: str
    known: str
    suggestion: str
    instead: str

    @property
    def remedy(self) -> str:
        """What may be meant, or what to write instead of an option of old."""
        other = "Remove it, or name another strategy."
        return self.instead or did_you_mean(self.suggestion) or other


@final
@dataclass(frozen=True, kw_only=True)
class OptionCount(Worded):
    """An option with too few or too many values."""

    code: ClassVar[str] = "KG0604"
    rule: ClassVar[str] = "An option gets as many values as it takes."
    says: ClassVar[str] = "'{name}' takes {wanted}, got {actual}."
    advice: ClassVar[str] = "Write '{usage}'."

    name: str
    expected: int
    actual: int
    usage: str

    @property
    def wanted(self) -> str:
        """The number of values, in words."""
        return counted(self.expected, "value")


@final
@dataclass(frozen=True, kw_only=True)
class OptionValue(Worded):
    """An option's value out of its range."""

    code: ClassVar[str] = "KG0605"
    rule: ClassVar[str] = "An option's values are in its range."
    says: ClassVar[str] = "'{name}' can't be {value}: it is {accepted}."
    advice: ClassVar[str] = (
        "Write '{usage}', each {accepted}: the nearest is '{nearest}'."
    )

    name: str
    value: int
    accepted: str
    usage: str
    nearest: str


@final
@dataclass(frozen=True, kw_only=True)
class RepeatedOption(WordedBeside):
    """An option given twice."""

    code: ClassVar[str] = "KG0606"
    rule: ClassVar[str] = "A schedule gives an option once."
    says: ClassVar[str] = "The option '{name}' is given twice."
    beside: ClassVar[str] = "first here"
    advice: ClassVar[str] = "Keep one of them."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class GuardReads(WordedNear):
    """A guard that asks for what is not known before the kernel runs."""

    code: ClassVar[str] = "KG0607"
    rule: ClassVar[str] = "A guard reads dims, integer scalars and the adapter."
    says: ClassVar[str] = "A guard can't use {what}."
    nearby: ClassVar[str] = "declared here"
    advice: ClassVar[str] = (
        "A guard is made of dims, integer scalars, literals, "
        "'adapter.workgroup_bytes', '.invocations', '.subgroups', '.f16', arithmetic "
        "and comparisons."
    )

    what: str


@final
@dataclass(frozen=True, kw_only=True)
class GuardOfSome(Worded):
    """A guard of several kernels that reads what some of them lack."""

    code: ClassVar[str] = "KG0613"
    rule: ClassVar[str] = "A guard reads what each of its kernels has."
    says: ClassVar[str] = "A guard of {kernels} can't use '{name}'."
    points: ClassVar[str] = "no dim or integer scalar there"
    advice: ClassVar[str] = "Write a schedule for {kernels} apart, without '{name}'."

    name: str
    kernels: str


@final
@dataclass(frozen=True, kw_only=True)
class AmbiguousInGuard(Worded):
    """A guard of another file's kernel that reads a name with two meanings."""

    code: ClassVar[str] = "KG0611"
    rule: ClassVar[str] = "Each name in a guard has one meaning."
    says: ClassVar[str] = "'{name}' is {kind} of '{kernel}', and a constant here."
    advice: ClassVar[str] = "Rename the constant."

    name: str
    kind: str
    kernel: str
    value: Span
    constant: Span

    @property
    def related(self) -> tuple[Related, ...]:
        """Both meanings."""
        return (
            Related(self.constant, "the constant"),
            Related(self.value, f"{self.kind} of '{self.kernel}'"),
        )


@final
@dataclass(frozen=True, kw_only=True)
class GuardType(Worded):
    """A guard that is a number."""

    code: ClassVar[str] = "KG0608"
    rule: ClassVar[str] = "A guard is true or false."
    says: ClassVar[str] = "A guard is true or false, but this is a number."
    advice: ClassVar[str] = "Compare it with something: '{example}'."

    example: str


@final
@dataclass(frozen=True, kw_only=True)
class UnknownAdapterFact(Worded):
    """Something that a guard can't ask of the adapter."""

    code: ClassVar[str] = "KG0609"
    rule: ClassVar[str] = "A guard asks only for known properties of the adapter."
    says: ClassVar[str] = "A guard can't ask for 'adapter.{name}'."
    points: ClassVar[str] = "it can ask for {known}"
    advice: ClassVar[str] = "{remedy}"

    name: str
    known: str
    suggestion: str

    @property
    def remedy(self) -> str:
        """What may be meant."""
        meant = self.suggestion and f"adapter.{self.suggestion}"
        return did_you_mean(meant) or "Ask for one of these, as in 'adapter.f16'."


@final
@dataclass(frozen=True, kw_only=True)
class UnreachableSchedule(WordedBeside):
    """A schedule that an earlier one always precedes."""

    code: ClassVar[str] = "KG0610"
    rule: ClassVar[str] = "The first schedule whose guard holds is used."
    says: ClassVar[str] = "This schedule is never used{for_some}."
    beside: ClassVar[str] = "this one comes first for all the same calls"
    advice: ClassVar[str] = "Move it up, or give the earlier one a narrower guard."

    kernels: str = ""

    @property
    def for_some(self) -> str:
        """Of which of its kernels that is so, if not of all."""
        return f" for {self.kernels}" if self.kernels else ""
