"""Online softmax: running maxima and totals of rows while a pass goes over the keys.

Where a tile raises the largest score of a row, the totals so far are scaled to it, as they
are sums of exp(score - the largest score so far):

    new   = max(top, largest score of the tile)
    total = total * exp(top - new) + sum of exp(score - new)
    top   = new

After Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from kerngen.ir.types import F32_MAX
from kerngen.schedule.flash.tile_pass import KeyPass, Rows, rows_of
from kerngen.schedule.flash.weights import Weights
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.lowering.values import COMPONENTS
from kerngen.shader import tree as t


@final
class OnlineRows:
    """Builds the WGSL that updates the running numbers of rows, in vectors of four rows.

    `sums` is the number of weighted sums kept of a row, besides the total of the weights.  The
    totals of an invocation are of its own keys alone, until `join` adds up those of all
    invocations that share the row; the maxima are those of the whole row at any time.
    """

    def __init__(self, run: KeyPass, weights: Weights, sums: int = 0) -> None:
        """Name the numbers."""
        s = run.builder
        self._run = run
        self._weights = weights
        self._blocks = range(run.rows.micro_m // VECTOR)
        self.top = [t.Ident(s.fresh(f"top_{b}")) for b in self._blocks]
        self.totals = [
            [t.Ident(s.fresh(f"{name}_{b}")) for b in self._blocks]
            for name in ("total", *(f"sum_{n}" for n in range(sums)))
        ]
        self.joined: list[list[t.Ident]] = []

    def declare(self) -> list[t.Stmt]:
        """Return declarations of the running numbers, with their values before any key."""
        lowest = t.call("vec4f", t.Literal(repr(-F32_MAX)))
        body: list[t.Stmt] = []
        for b in self._blocks:
            body.append(t.Var(self.top[b].name, lowest))
            body += [t.Var(total[b].name, None, "vec4f") for total in self.totals]
        return body

    def take(
        self,
        rows: Rows,
        share: t.Expr,
        scaled: Callable[[int], Sequence[t.Ident]] = lambda _: (),
        factors: Sequence[Rows] = (),
    ) -> list[t.Stmt]:
        """Return statements that add a tile: raise the maxima, turn its scores into weights.

        - `rows`: the scores of each row of the invocation, which become its weights
        - `share`: what every weight is multiplied with (`scale.py`)
        - `scaled`: returns further variables of a row that are scaled to the new maximum
        - `factors`: for each weighted sum the factors of its weights

        For rows 0 to 3, after the invocations of a row have joined their largest scores to
        `new_0`:

            new_0 = max(top_0, new_0);
            let scale_0 = exp(top_0 - new_0);
            top_0 = new_0;
            score_0_0 = exp(score_0_0 - top_0.x) * share;
            acc_0 *= scale_0.x;
            ...
            total_0 = total_0 * scale_0 + vec4f(dot(score_0_0 + score_0_1, vec4f(1.0)), ...);
        """
        s, run = self._run.builder, self._run
        new = [t.Ident(s.fresh(f"new_{b}")) for b in self._blocks]
        own = [t.Ident(s.fresh(f"own_{b}")) for b in self._blocks]
        body: list[t.Stmt] = []
        for b, name in enumerate(own):
            parts = tuple(run.across("max", rows[r]) for r in rows_of(b))
            body.append(t.Let(name.name, t.Call("vec4f", parts)))
        body += run.shared(self._weights, own, new, "max")
        for b, top in enumerate(self.top):
            raised = t.call("max", top, new[b])
            scale = t.Ident(s.fresh(f"scale_{b}"))
            # What is summed so far is relative to the old maximum: exp(old - new)
            # rescales it.
            fall = t.call("exp", t.Binary("-", top, new[b]))
            body += [t.Assign(new[b], raised), t.Let(scale.name, fall)]
            body.append(t.Assign(top, new[b]))
            for r in rows_of(b):
                component = COMPONENTS[r % VECTOR]
                for v in rows[r]:
                    less = t.Binary("-", v, t.Member(top, component))
                    body.append(t.Assign(v, t.call("exp", less) * share))
                for v in scaled(r):
                    body.append(t.Assign(v, t.Member(scale, component), "*="))
            body += self._added(b, scale, rows, factors)
        return body

    def _added(
        self, b: int, scale: t.Ident, rows: Rows, factors: Sequence[Rows]
    ) -> list[t.Stmt]:
        """Add a tile's weights to the totals of four rows."""
        total, *sums = (each[b] for each in self.totals)
        parts = tuple(self._run.across("sum", rows[r]) for r in rows_of(b))
        added = t.Binary("+", total * scale, t.Call("vec4f", parts))
        body: list[t.Stmt] = [t.Assign(total, added)]
        for each, factor in zip(sums, factors, strict=True):
            parts = tuple(_dot(rows[r], factor[r]) for r in rows_of(b))
            added = t.Binary("+", each * scale, t.Call("vec4f", parts))
            body.append(t.Assign(each, added))
        return body

    def join(self) -> list[t.Stmt]:
        """Return statements that add up the totals of all invocations that share a row."""
        s, body = self._run.builder, list[t.Stmt]()
        for each in self.totals:
            names = [t.Ident(s.fresh(f"whole_{b}")) for b in self._blocks]
            body += self._run.shared(self._weights, each, names, "sum")
            self.joined.append(names)
        return body

    def of_row(self, r: int) -> tuple[t.Expr, ...]:
        """Return the largest score and the joined totals of row `r` of this invocation."""
        b, component = divmod(r, VECTOR)
        vectors = (self.top[b], *(joined[b] for joined in self.joined))
        return tuple(t.Member(vector, COMPONENTS[component]) for vector in vectors)


def _dot(weights: Sequence[t.Ident], factors: Sequence[t.Ident]) -> t.Expr:
    first, *others = (
        t.call("dot", w, f) for w, f in zip(weights, factors, strict=True)
    )
    total: t.Expr = first
    for other in others:
        total = t.Binary("+", total, other)
    return total
