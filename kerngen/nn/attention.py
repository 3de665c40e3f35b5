"""Attention over heads."""

from __future__ import annotations

from collections.abc import Sequence

from kerngen.nn.shapes import check_rank
from kerngen.nn.variable import (
    AnyTensor,
    Value,
    Variable,
    as_variable,
    computed,
    joint_edge,
)
from kerngen.runtime import ShapeError
from kerngen_kernels import attention as kernels
from kerngen_kernels import layout


def attention(
    q: Value, k: Value, v: Value, *, heads: int, causal: bool = False
) -> Variable:
    """Return softmax(q k^T / sqrt(d)) v per head (Vaswani et al., 2017).

    The features of the heads are side by side: each head has d = e / heads of them.

    Args:
        q: [b, s, e]. The queries.
        k: [b, t, e]. The keys.
        v: [b, t, f]. The values.
        heads: The number of heads, which divides e and f.
        causal: Whether a query sees the keys up to its own place only.  The last query
            is at the last key: with t > s, the first t - s keys are earlier positions.

    Returns:
        [b, s, f].

    Raises:
        ShapeError: If a rank or a length does not fit, or if causal queries are more
            than keys, so that some would see none.
    """
    given = tuple(as_variable(value) for value in (q, k, v))
    for role, variable in zip(("q", "k", "v"), given, strict=True):
        check_rank("attention", role, variable, 3, "[batch, positions, features]")
        if heads < 1 or variable.shape[-1] % heads:
            raise ShapeError(
                f"attention: {role} has shape {variable.shape}; expected a last axis "
                f"that {heads} heads divide."
            )
    if causal and given[0].shape[1] > given[1].shape[1]:
        raise ShapeError(
            f"attention: q has {given[0].shape[1]} positions and k has "
            f"{given[1].shape[1]}; causal, the first queries would see no key."
        )
    # Attention by heads: [b, s, e] as [b, heads, s, d]. `top` and `total` of each query, its
    # greatest score and the sum of its exponentials, are kept for the gradients.
    q4, k4, v4 = (layout.split_heads(each.tensor, heads=heads) for each in given)
    if causal:
        y, top, total = kernels.causal_attention_kept(q4, k4, v4)
    else:
        y, top, total = kernels.attention_kept(q4, k4, v4)
    kept = q4, k4, v4, y, top, total

    def pull(dy: AnyTensor, _: Sequence[AnyTensor | None]) -> Sequence[AnyTensor]:
        dy4 = layout.split_heads(dy, heads=heads)
        found: Sequence[AnyTensor]
        if causal:
            found = kernels.causal_attention_backward(*kept, dy4)
        else:
            found = kernels.attention_backward(*kept, dy4)
        return [layout.merge_heads(each) for each in found]

    return computed(layout.merge_heads(y), joint_edge(given, pull, *kept))
