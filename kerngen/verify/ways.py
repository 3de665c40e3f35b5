"""Ways to run a kernel: one variant of one schedule of a stage, the rest as usual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

from kerngen.plan.size import ALWAYS, All, Compare, Guard, Literal, Symbol, holds
from kerngen.plan.tree import Case, Choice, Dispatch, Repeat, Sequence, Step
from kerngen.runtime.calls.kernel import Dims, Kernel


@final
@dataclass(frozen=True)
class Way:
    """One way to run a kernel: a stage, a strategy, and a variant of it.

    The variant is a case of the strategy's choice by lengths; without such a choice it
    has no name.
    """

    original: Kernel
    stage: str
    strategy: Case
    variant: Case
    body: Sequence = ()

    def __str__(self) -> str:
        """Return stage, strategy and variant as text."""
        names = self.stage, self.strategy.name, self.variant.name
        return " ".join(filter(None, names))

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel with a plan that only runs this way."""
        return replace(self.original, read_body=lambda: self.body)

    def takes(self, lengths: Dims) -> bool:
        """Whether the variant is chosen at these lengths, and the strategy takes them at all."""
        guards = (self.variant.when, *_non_empty(self.strategy.when))
        return all(holds(guard, lengths) for guard in guards)


def _non_empty(guard: Guard) -> Iterator[Guard]:
    """Yield the parts of a strategy's guard that exclude empty axes, as `e > 0`.

    All others are about what is fast: a way is verified beyond them, too.
    """
    match guard:
        case All(guards):
            for each in guards:
                yield from _non_empty(each)
        case Compare(">", Symbol(), Literal(0)):
            yield guard
        case _:
            pass


def ways(kernel: Kernel) -> tuple[Way, ...]:
    """Return every way to run a kernel.

    A strategy that is in several choices for a stage is one way.
    """
    found: dict[str, Way] = {}
    for stage, strategy, variant, body in _ways(kernel.body):
        way = Way(kernel, stage, strategy, variant, body)
        found.setdefault(str(way), way)
    return tuple(found.values())


def _ways(body: Sequence) -> Iterator[tuple[str, Case, Case, Sequence]]:
    """Yield each stage, strategy and variant of a plan, and the plan that runs only these.

        y: gemm (aligned | edge) when n > 64, generic
            → gemm aligned;  gemm edge;  generic

    Choices for other stages are left with their last case, which takes all lengths.
    """
    for at, step in enumerate(body):
        if not isinstance(step, Choice) or not step.stages:
            continue
        before, after = _usual(body[:at]), _usual(body[at + 1 :])
        for case in step.cases:
            variants = _variants(case.body) if case.name else ()
            own = ((step.stages[0], case, *each) for each in variants)
            for stage, strategy, variant, within in (*own, *_ways(case.body)):
                forced = replace(case, body=within, when=ALWAYS)
                whole = (*before, Choice((forced,), step.stages), *after)
                yield stage, strategy, variant, whole


def _variants(body: Sequence) -> Iterator[tuple[Case, Sequence]]:
    """Yield the variants of a strategy, each with the strategy's steps if it is forced.

    The variant's own steps include the dispatches beside the choice, which all variants
    run.
    """
    usual = _usual(body)
    own = tuple(s for s in body if isinstance(s, Dispatch | Repeat))
    choices = [at for at, step in enumerate(body) if _is_by_lengths(step)]
    for at in choices:
        step = body[at]
        assert isinstance(step, Choice)
        for variant in step.cases:
            forced = Choice((replace(variant, when=ALWAYS),))
            whole = replace(variant, body=(*variant.body, *own))
            yield whole, (*usual[:at], forced, *usual[at + 1 :])
    if not choices:
        yield Case("", own), usual


def _is_by_lengths(step: Step) -> bool:
    return isinstance(step, Choice) and not step.stages


def _usual(body: Sequence) -> Sequence:
    """Return a sequence where each choice between strategies has its last case alone."""
    return tuple(
        (
            Choice((_usual_case(step.cases[-1]),), step.stages)
            if isinstance(step, Choice) and step.stages
            else step
        )
        for step in body
    )


def _usual_case(case: Case) -> Case:
    return replace(case, body=_usual(case.body))
