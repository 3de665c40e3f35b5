"""Bools in memory: WGSL can't store them in buffers, so temporaries have u32 instead."""

from __future__ import annotations

from dataclasses import replace

from kerngen.ir.nodes import Binary, Cast, Constant, Expr, Load, Tensor
from kerngen.ir.staging.stages import StagedKernel, Step, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children


def truths_as_words(staged: StagedKernel) -> StagedKernel:
    """Return stages whose temporaries hold bools as u32, 1 for true and 0 for false.

    Before:  near[i] = x[i] < 2.0;         y[i] = select(0.0, 1.0, near[n - 1 - i]);
    After:   near[i] = u32(x[i] < 2.0);    y[i] = select(0.0, 1.0, near[n - 1 - i] != 0);
    """
    words = {
        tensor: replace(tensor, element=Scalar.U32)
        for tensor in staged.temporaries
        if tensor.element is Scalar.BOOL
    }
    if not words:
        return staged
    stages = tuple(
        replace(stage, steps=tuple(_step(step, words) for step in stage.steps))
        for stage in staged.stages
    )
    temporaries = tuple(words.get(tensor, tensor) for tensor in staged.temporaries)
    return StagedKernel(staged.kernel, stages, temporaries)


def _step(step: Step, words: dict[Tensor, Tensor]) -> Step:
    value = _value(step.value, words)
    if isinstance(step, Write) and step.tensor in words:
        word = Cast(value, Scalar.U32)
        return replace(step, tensor=words[step.tensor], value=word)
    return replace(step, value=value)


def _value(expr: Expr, words: dict[Tensor, Tensor]) -> Expr:
    inner = map_children(expr, lambda child: _value(child, words))
    if isinstance(inner, Load) and inner.tensor in words:
        word = replace(inner, tensor=words[inner.tensor])
        return Binary("!=", word, Constant(0, Scalar.U32), Scalar.BOOL)
    return inner
