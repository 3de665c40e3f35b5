"""What the standard kernels may be given: lengths, scalars, and contents of tensors.

Terms of sums are of like size, with random signs, so that a term left out shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.values.elements import Number

Dims: TypeAlias = dict[str, int]
Shape: TypeAlias = tuple[int, ...]
Draw: TypeAlias = Callable[[np.random.Generator, Shape], NDArray[Any]]


def like_size(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Magnitudes within a factor of three of each other, either sign."""
    return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice((-1.0, 1.0), shape))


def upper_half(number: Number) -> Draw:
    """Integers of few bits of like magnitudes, of either sign if they have one."""
    high = int(number.highest)
    signs = (-1, 1) if number.lowest else (1,)

    def draw(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
        drawn = rng.integers(high // 2 + 1, high + 1, shape)
        return np.asarray(drawn * rng.choice(signs, shape))

    return draw


def _counts(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Lengths of a few, and more than there are."""
    return rng.choice((1, 2, 3, 7, 1000), shape)


def _low(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    return rng.integers(0, 4, shape)


def spread(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Where activations bend, and beyond."""
    return rng.uniform(-8.0, 8.0, shape)


def positive(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """From small to large, never 0."""
    return np.asarray(np.exp(rng.uniform(-8.0, 8.0, shape)))


def unit(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Probabilities, cosines of acute angles."""
    return rng.uniform(0.0, 1.0, shape)


def decaying(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """From -1 to 0."""
    return -rng.uniform(0.0, 1.0, shape)


def logits(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Rows of like-sized scores, some of them far from 0."""
    return np.asarray(like_size(rng, shape) + rng.choice((0.0, -100.0, 100.0)))


def labels(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Mostly classes; some that are none, and one that is negative as an i32."""
    return rng.choice((0, 1, 2, 3, 5, 1000, 2**32 - 1), shape)


def small(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Places at the beginning of an axis."""
    return rng.integers(0, 5, shape)


def bits(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """All 32 bits, and few."""
    return np.asarray(rng.integers(0, 2**32, shape) >> rng.choice((0, 8, 28), shape))


def starts(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Where rows begin, ascending; some are empty, some begin past the end."""
    return np.sort(rng.choice((0, 1, 1, 5, 30, 31, 90), shape))


def failures(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """No step that failed, or one."""
    return rng.choice((0, 7), shape)


def positions(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """A few of the first rows."""
    return rng.integers(0, 4, shape)


def flags(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Zeros and ones."""
    return rng.integers(0, 2, shape)


def signs(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Ones of either sign."""
    return rng.choice((-1.0, 1.0), shape)


def ties(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Few numbers, each of them often."""
    return rng.integers(-3, 4, shape)


def wide(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Whole numbers, broken ones, and those that no 32-bit integer holds."""
    return np.asarray(
        spread(rng, shape) * rng.choice((0.1, 1.0, 1e4, 1e9, 1e12), shape)
    )


def whole(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Integers of all 32 bits, and small ones."""
    return np.asarray(rng.integers(0, 2**32, shape) >> rng.choice((0, 8, 28), shape))


@final
@dataclass(frozen=True)
class Domain:
    """What one kernel may be given.

    `lengths` bounds dims, from and to; `derive` computes dims that depend on others;
    `scalars` and `inputs` say what to choose from, by parameter.
    """

    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, Any])
    derive: Callable[[Dims], Dims] = dict
    scalars: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Any])
    inputs: Mapping[str, Draw] = field(default_factory=dict[str, Any])

    def fit(self, dims: Dims) -> Dims:
        """Allowed lengths, close to these where they are within bounds."""
        bounded = {dim: self._within(dim, length) for dim, length in dims.items()}
        return bounded | self.derive(bounded)

    def _within(self, dim: str, length: int) -> int:
        """Halved while it is too long, which keeps multiples of tiles what they are."""
        low, high = self.lengths.get(dim, (0, length))
        while length > high:
            length //= 2
        return length if length >= low else min(low + length, high)


def _bounded(names: str, low: int, high: int) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(names.split(), (low, high))


def _all(names: str, domain: Domain) -> dict[str, Domain]:
    return dict.fromkeys(names.split(), domain)


_WINDOWS = {
    "stride": (1, 2, 3),
    "pad": (0, 1, 2),
    "dilation": (1, 2),
    "size": (1, 2, 3),
    "h_len": (7, 8, 12),
    "w_len": (8, 9, 13),
    "r_len": (1, 2, 4),
    "s_len": (1, 3, 4),
    "groups": (1, 2, 3),
}
# As many channels as a tile has terms, along which the products of kernels of 1 x 1 sum.
_CHANNELS = (0, 36)
_CONV = Domain(
    lengths={
        **_bounded("b o", 0, 4),
        "c": _CHANNELS,
        **_bounded("h w", 7, 18),
        **_bounded("r s", 1, 4),
        **_bounded("p t", 1, 2),
    },
    scalars=_WINDOWS,
)
_CONV_GRADIENT = Domain(
    lengths={
        **_bounded("b c", 0, 4),
        "o": _CHANNELS,
        **_bounded("h w", 16, 20),
        **_bounded("r s p t", 1, 4),
    },
    scalars=_WINDOWS,
)
# Their p and t follow from h and w, which may so be short: then few elements are summed.
_KERNEL_GRADIENT = replace(
    _CONV_GRADIENT, lengths={**_CONV_GRADIENT.lengths, **_bounded("h w", 8, 20)}
)
_HEADS = Domain(
    lengths={**_bounded("b h", 0, 1), **_bounded("s t d e", 1, 128)},
    derive=lambda d: {"t": max(d["s"], d["t"])} if "t" in d else {},
)
_GROUPED_HEADS = Domain(
    lengths={**_HEADS.lengths, "r": (1, 2)},
    derive=lambda d: {"h": 2 * d["r"], "t": max(d["s"], d["t"])},
)
_BATCH = Domain(lengths={**_bounded("b c", 0, 6), **_bounded("h s d m n", 0, 20)})
_MATRIX = _bounded("m n k", 1, 140)
_SHIFTS = Domain(
    lengths=_MATRIX, scalars={"shift": (0, 1, -1, 7, -200, 1000), "value": (0.0, 0.3)}
)
_PADS: Mapping[str, Sequence[float]] = {
    "top": (0, 1, 4),
    "bottom": (0, 1, 4),
    "left": (0, 1, 4),
    "right": (0, 1, 4),
}

DOMAINS: Mapping[str, Domain] = {
    **_all("log sqrt", Domain(inputs={"x": positive})),
    "div": Domain(inputs={"b": like_size}),
    "clip_by_norm": Domain(inputs={"total": positive}),
    "note_nonfinite": Domain(inputs={"failed": failures}),
    **_all(
        "adamw adamw_unless adam_unless rmsprop adagrad",
        Domain(
            inputs={"v": positive, "failed": failures}, scalars={"alpha": (0.99, 0.5)}
        ),
    ),
    **_all(
        "sgd_unless lion_unless",
        Domain(inputs={"failed": failures}, scalars={"nesterov": (0, 1)}),
    ),
    **_all("softmax log_softmax", Domain(inputs={"x": logits})),
    "logsumexp": Domain(lengths={"n": (1, 5000)}, inputs={"x": logits}),
    "cross_entropy": Domain(
        lengths={"n": (1, 1000)}, inputs={"logits": logits, "labels": labels}
    ),
    "mean_cross_entropy": Domain(
        lengths={"n": (1, 1000)}, inputs={"logits": logits, "labels": labels}
    ),
    **_all(
        "cross_entropy_gradient mean_cross_entropy_gradient",
        Domain(inputs={"logits": logits, "labels": labels}),
    ),
    "ema": Domain(scalars={"decay": (0.9, 0.0, 1.0)}),
    **_all("linear_recurrence linear_recurrence_gradient", Domain(inputs={"a": unit})),
    "selective_scan": Domain(
        lengths={**_bounded("b m", 0, 12), **_bounded("d s", 1, 17)},
        inputs={"a": decaying, "dt": unit},
    ),
    **_all("huber huber_gradient", Domain(scalars={"delta": (1.0, 0.3)})),
    **_all(
        "binary_cross_entropy binary_cross_entropy_gradient",
        Domain(inputs={"x": spread, "target": unit}),
    ),
    **_all(
        "conv1d conv2d conv2d_bias depthwise_conv2d max_pool2d avg_pool2d",
        _CONV,
    ),
    "conv2d_input_gradient": replace(
        _CONV, lengths={**_CONV.lengths, "c": (0, 4), "o": _CHANNELS}
    ),
    "conv1d_gradient": _CONV_GRADIENT,
    **_all("conv2d_kernel_gradient depthwise_conv2d_gradient", _KERNEL_GRADIENT),
    "conv2d_bias_gradient": Domain(lengths=_bounded("b o p t", 0, 12)),
    "avg_pool2d_gradient": Domain(lengths=_bounded("b c p r", 1, 4), scalars=_WINDOWS),
    "max_pool2d_gradient": Domain(
        lengths={**_CONV_GRADIENT.lengths, "r": (1, 4)},
        inputs={"x": ties, "y": ties},
        scalars=_WINDOWS,
    ),
    "conv2d_grouped": Domain(
        lengths=_CONV.lengths,
        derive=lambda d: {"o": 6, "channels": 6 * d["c"]},
        scalars=_WINDOWS,
    ),
    **_all(
        "upsample_nearest upsample_bilinear",
        Domain(
            lengths={**_bounded("b c", 0, 4), **_bounded("h w", 1, 18)},
            scalars={"factor": (1, 2, 3)},
        ),
    ),
    **_all(
        "attention causal_attention attention_gradient causal_attention_gradient "
        "attention_kept causal_attention_kept",
        _HEADS,
    ),
    **_all(
        "grouped_query_attention grouped_query_attention_gradient "
        "grouped_query_attention_kept",
        _GROUPED_HEADS,
    ),
    **_all(
        "attention_backward causal_attention_backward",
        replace(_HEADS, inputs={"total": positive}),
    ),
    "grouped_query_attention_backward": replace(
        _GROUPED_HEADS, inputs={"total": positive}
    ),
    **_all(
        "rotary rotary_gradient rotary_interleaved rotary_interleaved_gradient",
        Domain(
            lengths={**_HEADS.lengths, "r": (1, 20)},
            derive=lambda d: {"d": 2 * d["r"] + d["d"] % 3},
            inputs={"cosine": unit, "sine": unit},
        ),
    ),
    **_all(
        "turn_heads norm_turn_heads",
        Domain(
            lengths={**_bounded("s", 0, 20), "h": (1, 4), "d": (1, 40), "r": (1, 2)},
            derive=lambda d: {
                "c": d["h"] + 2 * d["r"],
                "d": 2 * d["d"],
                **dict.fromkeys("mt", d["s"] + 3),
            },
            inputs={"at": positions},
        ),
    ),
    "cached_attention": Domain(
        lengths={
            **_bounded("s d e", 1, 128),
            **_bounded("t", 3, 128),
            "r": (1, 2),
        },
        derive=lambda d: {"h": 2 * d["r"], "t": d["s"] + d["t"]},
        inputs={"at": positions},
    ),
    "padded_attention": Domain(
        lengths={**_bounded("b h", 0, 1), **_bounded("s d", 1, 128)},
        inputs={"count": _counts},
    ),
    "mean_unit": Domain(lengths=_bounded("b s d", 1, 140), inputs={"count": _counts}),
    "embed_text": Domain(
        lengths=_bounded("b s v d m k", 1, 60),
        derive=lambda d: {"m": max(d["s"], d["m"])},
        inputs={"ids": labels},
    ),
    "linear_u4": Domain(inputs={"zero": _low}),
    **_all(
        "norm_linear_half norm_linear_i4 norm_linear_i8",
        Domain(
            lengths=_bounded("s d f", 1, 140),
        ),
    ),
    **_all(
        "embedding_half embedding_part embedding_part_half",
        Domain(
            lengths=_bounded("v d n", 1, 140),
            inputs={"ids": labels},
            scalars={"first": (0, 1, 3)},
        ),
    ),
    "gumbel": Domain(
        lengths=_bounded("m n", 0, 60),
        scalars={"temperature": (0.5, 1.0), "seed": (0, 7), "place": (0, 3)},
    ),
    **_all(
        "groupnorm groupnorm_gradient groupnorm_parameter_gradients batchnorm"
        " batch_statistics",
        Domain(
            lengths={**_bounded("b", 0, 4), **_bounded("g c n", 1, 40)},
            inputs={"variance": positive},
        ),
    ),
    **_all(
        "batchnorm_training batchnorm_training_kept batchnorm_training_gradient",
        Domain(
            lengths={**_bounded("b", 1, 4), **_bounded("c n", 1, 40)},
            inputs={"scale": positive},
        ),
    ),
    **_all(
        "global_avg_pool swap_heads swap_heads_gradient merge_heads",
        _BATCH,
    ),
    # Tiles are for matrices of 4,096 elements and more.
    "batch_transpose": Domain(lengths={"b": (0, 3), **_bounded("m n", 0, 140)}),
    "split_heads": Domain(
        lengths=_bounded("b s e", 1, 9),
        derive=lambda d: {"e": 6 * d["e"]},
        scalars={"heads": (1, 2, 3)},
    ),
    **_all(
        "slice_rows slice_columns",
        Domain(
            lengths=_bounded("m n", 9, 200),
            scalars={"start": (0, 1, 4), "count": (0, 1, 4, 5)},
        ),
    ),
    **_all("roll_rows roll_columns", _SHIFTS),
    **_all("pad_constant pad_edge", Domain(lengths=_MATRIX, scalars=_PADS)),
    "pad_reflect": Domain(lengths=_bounded("m n", 5, 140), scalars=_PADS),
    **_all("join_rows join_columns", Domain(lengths=_MATRIX)),
    **_all(
        "repeat_rows tile",
        Domain(
            lengths=_MATRIX,
            scalars={"times": (1, 2, 3), "down": (0, 1, 2), "across": (1, 3)},
        ),
    ),
    **_all(
        "embedding embedding_gradient pick one_hot",
        Domain(
            lengths=_bounded("v d n m", 1, 140),
            inputs={"ids": labels},
            scalars={"v_len": (1, 7), "columns": (1, 8)},
        ),
    ),
    **_all(
        "segment_sum segment_mean segment_max segment_min"
        " confusion_matrix index_add spmv spmm",
        Domain(
            lengths=_bounded("n m d k", 1, 140),
            inputs=dict.fromkeys(
                ("segment", "actual", "predicted", "ids", "row", "column"), labels
            ),
            scalars=dict.fromkeys(("segments", "classes", "rows"), (1, 7)),
        ),
    ),
    "spmv_csr": Domain(
        lengths=_bounded("m n k", 1, 140), inputs={"start": starts, "column": labels}
    ),
    "bincount_weighted": Domain(inputs={"x": labels}, scalars={"bins": (0, 1, 6)}),
    **_all("argmax argmin", Domain(inputs={"x": ties})),
    "nonzero": Domain(lengths={"n": (0, 3000)}),
    **_all(
        "sort_u32 sort_i32 argsort_u32 argsort_i32",
        Domain(lengths={"n": (0, 900)}, inputs={"x": bits}),
    ),
    **_all("sort_f32 argsort_f32", Domain(inputs={"x": ties})),
    **_all(
        "order_by_rows places_in_rows",
        Domain(lengths={"n": (0, 900)}, scalars={"length": (1, 7, 300)}),
    ),
    **_all(
        "take_f32 take_i32 take_u32 take_places",
        Domain(lengths=_MATRIX, inputs={"order": labels, "at": small}),
    ),
    **_all(
        "begins_u32 begins_i32 begins_f32 is_nonzero_i32 is_nonzero_f32",
        Domain(inputs={"x": ties}),
    ),
    "run_lengths": Domain(inputs={"starts": labels}),
    **_all(
        "find_more greatest_of_chunks greatest_of_uneven_chunks take_chunks "
        "places_in_row",
        Domain(
            lengths={**_MATRIX, **_bounded("c t", 1, 20), **_bounded("k", 1, 9)},
            inputs={"x": ties, "found": small, "chunks": small},
            scalars={"count": (0, 1, 6), "size": (1, 4, 7)},
        ),
    ),
    "where": Domain(inputs={"condition": labels}),
    "cumprod_rows": Domain(inputs={"x": signs}),
    "cumsum_u32": Domain(inputs={"x": whole}),
    "segment_starts": Domain(inputs={"keys": flags}),
    "cumsum_segments_u32": Domain(inputs={"x": whole, "keys": flags}),
    "row_variance": Domain(lengths={"n": (2, 300)}, scalars={"ddof": (0, 1)}),
    "standardize": Domain(lengths={"n": (2, 1000)}),
    "covariance": Domain(
        lengths={"m": (2, 300), "n": (0, 256)}, scalars={"ddof": (0, 1)}
    ),
    "histogram": Domain(
        scalars={"low": (-2.0, -1.0), "high": (2.0, 1.0), "bins": (1, 2, 16)}
    ),
    "bincount": Domain(inputs={"x": labels}, scalars={"bins": (0, 1, 6)}),
    "moving_average": Domain(lengths={"n": (7, 9000)}, scalars={"window": (1, 2, 7)}),
    "pairwise_squared_distances": Domain(lengths=_bounded("m k", 0, 128)),
    **_all("f32_to_i32 f32_to_u32", Domain(inputs={"x": wide})),
    **_all("i32_to_f32 u32_to_f32 i32_to_u32 u32_to_i32", Domain(inputs={"x": whole})),
    **_all(
        "random_bits uniform normal dropout",
        Domain(
            scalars={
                "count": (0, 1, 5, 300),
                "seed": (0, 1, 2**32 - 1),
                "offset": (0, 1000, 2**32 - 4),
                "stream": (0, 7),
                "rate": (0.0, 0.3, 0.5),
            }
        ),
    ),
}
"""By kernel; a kernel that is not here takes anything."""

SCALARS: Mapping[str, Sequence[float]] = {
    "low": (-3.0, 0.1),
    "high": (0.7, 5.0),
    "lr": (1e-3, 0.1),
    "beta1": (0.9, 0.5),
    "beta2": (0.999, 0.95),
    "momentum": (0.9, 0.0),
    "dampening": (0.0, 0.1),
    "eps": (1e-8, 1e-3),
    "weight_decay": (0.0, 0.01),
    "step": (1, 2, 1000),
    "max_norm": (0.5, 1e6),
}
"""By name, for all kernels."""

ANY_SCALAR = (1.0, 0.3, -2.5)
