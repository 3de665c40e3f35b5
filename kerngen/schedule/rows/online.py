"""Sums of exp(value - top) in the pass that finds `top`, the largest value of a row.

Where lanes do not hold a row, each pass reads it again.  This pass reads it for both:

    top[i]   = max[j] x[i, j];                    pass 1: max;  then top
    total[i] = sum[j] exp(x[i, j] - top[i]);      pass 1, too: the sum, scaled as top grows
    y[i, j]  = exp(x[i, j] - top[i]) / total[i];  pass 2: y

A lane's sum is relative to the largest value that it has seen.  With each block of elements

    raised = max(largest so far, values of the block)
    part   = part * exp(largest so far - raised) + sum of exp(value - raised)

and in the end the lane's part is scaled to the largest value of the row.

After Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.nodes import Binary, BuiltinCall, Expr, LocalValue, Reduce
from kerngen.ir.types import F32_MAX, Scalar
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.rows.plan import (
    Action,
    Fold,
    Pass,
    RowPlan,
    ScaledSum,
    Store,
    expressions,
)
from kerngen.shader import tree as t

_LOWEST_RANK: Final = "i32(-2139095040)"
"""The rank of the lowest finite number: `max_rank(-3.4028234663852886e38)`."""


def merge_sums(plan: RowPlan) -> RowPlan:
    """Return a plan in which no pass only adds exp(value - top): the pass of `top` does."""
    passes: list[Pass] = []
    for pass_ in plan.passes:
        sums = _scaled_sums(passes[-1], pass_) if passes else None
        if sums:
            last = passes[-1]
            after = (*last.after, *pass_.after)
            passes[-1] = replace(last, each=(*last.each, *sums), after=after)
        else:
            passes.append(pass_)
    return replace(plan, passes=tuple(passes))


def _scaled_sums(before: Pass, pass_: Pass) -> tuple[ScaledSum, ...] | None:
    """Return the sums of a pass, if the pass before it can compute all that it does.

    It can't if it stores what the sums read, as they read what is new.
    """
    stored = {action.tensor for action in before.each if isinstance(action, Store)}
    if stored.intersection(
        tensor for x in expressions(pass_.each) for tensor in tensors_read(x)
    ):
        return None
    found = [_scaled_sum(before, action) for action in pass_.each]
    sums = tuple(each for each in found if each is not None)
    return sums if len(sums) == len(found) else None


def _scaled_sum(before: Pass, action: Action) -> ScaledSum | None:
    """Return a fold of exp(value - top), where the pass before finds the largest value."""
    match action:
        case Fold(
            local,
            Reduce(
                kind="sum",
                body=BuiltinCall("exp", (Binary("-", value, LocalValue() as top),)),
                type=Scalar.F32,
                condition=None,
            ),
        ):
            largest = _fold_of_largest(before, value, top)
            return largest and ScaledSum(local, value, top, largest)
        case _:
            return None


def _fold_of_largest(pass_: Pass, value: Expr, top: LocalValue) -> LocalValue | None:
    """Return the fold by which a pass finds `top`, the largest of some values, if it does."""
    after = dict(pass_.after)
    for action in pass_.each:
        match action:
            case Fold(
                local,
                Reduce(
                    kind="max", body=BuiltinCall("max rank", (own,)), condition=None
                ),
            ):
                whole = BuiltinCall("max value", (local,), top.type)
                if own == value and after.get(top) == whole:
                    return local
            case _:
                pass
    return None


@final
@dataclass(frozen=True, slots=True)
class RunningSum:
    """The WGSL of a lane's part of a `ScaledSum`, in vectors of `width` elements.

        var total_part = vec4f(0.0);
        var total_top = vec4f(-3.4028234663852886e38);
        for (...) {
            ...                                     // `top_max_part` of the block's elements
            let raised = max_value4(max(top_max_part, vec4i(i32(-2139095040))));
            total_part *= exp(total_top - raised);
            total_top = raised;
            total_part += exp(x0 - total_top);      // of each element or vector
        }

    `top` is never -inf, so that elements of -inf count as 0 beside others.
    """

    shader: ShaderBuilder
    action: ScaledSum
    width: int
    part: t.Ident
    top: t.Ident

    @classmethod
    def named(cls, shader: ShaderBuilder, action: ScaledSum, width: int) -> RunningSum:
        """Name the variables of a sum."""
        names = (f"{action.local.name}_part", f"{action.local.name}_top")
        return cls(shader, action, width, *(t.Ident(shader.fresh(n)) for n in names))

    def declare(self) -> list[t.Stmt]:
        """Return the declarations of the variables, before any element."""
        start = self._wide(t.Literal(repr(-F32_MAX)), "f")
        return [
            t.Var(self.part.name, self._wide(t.Literal("0.0"), "f")),
            t.Var(self.top.name, start),
        ]

    def rescale(self, largest: t.Ident) -> list[t.Stmt]:
        """Return statements that scale the sum to the largest value, given as its rank."""
        raised = t.Ident(self.shader.fresh("raised"))
        lowest = self._wide(t.Literal(_LOWEST_RANK), "i")
        value = self.shader.helper("max_value", self.width)
        scale = t.call("exp", t.Binary("-", self.top, raised))
        return [
            t.Let(raised.name, t.call(value, t.call("max", largest, lowest))),
            t.Assign(self.part, scale, "*="),
            t.Assign(self.top, raised),
        ]

    def add(self, lowerer: Lowerer) -> None:
        """Emit the addition of an element, or vector of them."""
        top = LocalValue(self.top.name, Scalar.F32)
        lowerer.locals[top.name] = Value(self.top, self.width > 1)
        fall = Binary("-", self.action.value, top, Scalar.F32)
        value = lowerer.lower(BuiltinCall("exp", (fall,), Scalar.F32))
        wide = lowerer.widen(value, Scalar.F32) if self.width > 1 else value.expr
        lowerer.block.append(accumulate("sum", self.part, wide))

    def scaled(self, top: t.Expr, has_elements: t.Expr) -> t.Expr:
        """Return the lane's part, relative to the row's largest value: 0 of no elements."""
        scale = t.call("exp", t.Binary("-", self.top, top))
        none = self._wide(t.Literal("0.0"), "f")
        return t.call("select", none, t.Binary("*", self.part, scale), has_elements)

    def _wide(self, value: t.Expr, kind: str) -> t.Expr:
        return value if self.width == 1 else t.Call(f"vec4{kind}", (value,))
