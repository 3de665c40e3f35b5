"""Diagnostics about schedules that need the stages to be known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.worded import Worded


@final
@dataclass(frozen=True, kw_only=True)
class StrategyDoesNotFit(Diagnostic):
    """A schedule whose strategy suits no stage of its kernel, or not the one named."""

    code: ClassVar[str] = "KG0751"
    rule: ClassVar[str] = "A schedule's strategy suits a stage of its kernel."

    strategy: str
    kernel: str
    stage: str
    reasons: tuple[tuple[str, str], ...]
    by_options: bool = False

    @property
    def headline(self) -> str:
        """The headline: what is wrong, in one sentence."""
        what = f"Strategy '{self.strategy}'"
        if self.by_options:
            what = f"With these options, strategy '{self.strategy}'"
        if self.stage:
            return f"{what} does not fit the stage '{self.kernel}.{self.stage}'."
        return f"{what} fits no stage of '{self.kernel}'."

    @property
    def label(self) -> str:
        """Why, stage by stage."""
        return "; ".join(f"{stage}: {reason}" for stage, reason in self.reasons)

    @property
    def hint(self) -> str:
        """What to do."""
        if self.by_options:
            return "Without them it fits: remove the options that don't suit the stage."
        return "'generic' accepts every stage; without a schedule, kerngen picks one."


@final
@dataclass(frozen=True, kw_only=True)
class BadTiling(Diagnostic):
    """Options of `gemm` that make no tiling."""

    code: ClassVar[str] = "KG0752"
    rule: ClassVar[str] = "gemm's options divide each other evenly."

    fault: str

    @property
    def headline(self) -> str:
        """The headline: what is wrong, in one sentence."""
        return f"These options don't fit together: {self.fault}."

    @property
    def hint(self) -> str:
        """What to do."""
        return "The default is 'tile(128, 128, 16) micro(8, 16) pad(0) lanes(8, 4)'."


@final
@dataclass(frozen=True, kw_only=True)
class UnknownStage(Worded):
    """A schedule of a stage that its kernel does not have."""

    code: ClassVar[str] = "KG0753"
    rule: ClassVar[str] = "A schedule names a stage of its kernel."
    says: ClassVar[str] = "'{kernel}' has no stage '{stage}'."
    points: ClassVar[str] = "its stages are {known}"
    advice: ClassVar[str] = "{remedy}"

    kernel: str
    stage: str
    known: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class TooManyStages(Worded):
    """A kernel of more stages than one is made to have."""

    code: ClassVar[str] = "KG0754"
    rule: ClassVar[str] = "A kernel has no more stages than the limit."
    says: ClassVar[str] = "'{name}' takes {number} stages, and the limit is {limit}."
    advice: ClassVar[str] = "Split it into kernels that are called one after another."

    name: str
    number: int
    limit: int


@final
@dataclass(frozen=True, kw_only=True)
class TooManyPoints(Worded):
    """A stage whose lengths are numbers, and too large for any call to end."""

    code: ClassVar[str] = "KG0755"
    rule: ClassVar[str] = "A kernel computes no more than the limit, at any lengths."
    says: ClassVar[str] = "'{stage}' computes {number} terms, and the limit is {limit}."
    advice: ClassVar[str] = "Use smaller lengths, or dims that a call determines."

    stage: str
    number: int
    limit: str
