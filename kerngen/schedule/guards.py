"""What is known of guards where a stage begins, so that no schedule is made in vain."""

from __future__ import annotations

from typing import TypeAlias

from kerngen.ir.nodes import Expr

Facts: TypeAlias = frozenset[tuple[Expr, bool]]
"""Guards of which the outcome is known, each with that outcome."""

NOTHING: Facts = frozenset()


def outcome(guard: Expr | None, facts: Facts) -> bool | None:
    """Return whether a guard holds, where that is known; none at all always does."""
    if guard is None or (guard, True) in facts:
        return True
    return False if (guard, False) in facts else None


def learning(facts: Facts, guard: Expr | None, holds: bool) -> Facts:
    """Return what is known once a guard has been tried."""
    return facts if guard is None else facts | {(guard, holds)}
