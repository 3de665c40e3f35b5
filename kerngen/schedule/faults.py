"""Diagnostics about schedules: those that are found when a kernel has been cut into stages."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic


class StrategyDoesNotFit(Diagnostic, code="KG0751"):
    MESSAGE = "{wrong}"
    LABEL = "{why}"
    strategy: str
    kernel: str
    stage: str
    reasons: tuple[tuple[str, str], ...]
    by_options: bool = False

    @property
    def wrong(self) -> str:
        """The sentence of the message: the strategy does not fit a stage, or fits none."""
        what = f"Strategy '{self.strategy}'"
        if self.by_options:
            what = f"With these options, strategy '{self.strategy}'"
        if self.stage:
            return f"{what} does not fit the stage '{self.kernel}.{self.stage}'."
        return f"{what} fits no stage of '{self.kernel}'."

    @property
    def why(self) -> str:
        """For each stage, the reason why the strategy does not fit it."""
        return "; ".join(f"{stage}: {reason}" for stage, reason in self.reasons)

    @property
    def help(self) -> str:
        """The hint: which schedules would fit, or what to remove."""
        if self.by_options:
            return "Without them it fits: remove the options that don't suit the stage."
        if self.strategy == "generic":  # It refuses recurrences alone.
            return (
                "'recur', 'loop' and 'steps' run recurrences; without a schedule, "
                "kerngen picks one."
            )
        return "'generic' accepts every stage; without a schedule, kerngen picks one."


class BadTiling(Diagnostic, code="KG0752"):
    """The options of a schedule are tile sizes that do not fit together."""

    MESSAGE = "These options don't fit together: {fault}."
    HELP = "The default is '{default}'."
    strategy: str
    fault: str

    @property
    def default(self) -> str:
        """The options of the strategy's default tiling, as they are written in a schedule."""
        return {
            "gemm": "tile(128, 128, 16) micro(8, 16) pad(0) buffers(1) lanes(8, 4) stream(0) slices(1)",
            "flash": "tile(64, 64, 64) micro(8, 8) depth(16, 16)",
        }[self.strategy]


class UnknownStage(Diagnostic, code="KG0753"):
    MESSAGE = "'{kernel}' has no stage '{stage}'."
    LABEL = "its stages are {known}"
    kernel: str
    stage: str
    known: str
    remedy: str


class TooManyStages(Diagnostic, code="KG0754"):
    MESSAGE = "'{name}' takes {number} stages, and the limit is {limit}."
    HELP = "Split it into kernels that are called one after another."
    name: str
    number: int
    limit: int


class TooManyPoints(Diagnostic, code="KG0755"):
    MESSAGE = "'{stage}' computes {number} terms, and the limit is {limit}."
    HELP = "Use smaller lengths, or dims that a call determines."
    stage: str
    number: int
    limit: str
