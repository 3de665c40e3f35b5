"""The kernels whose gradients are tested: those of dsl/, and programs with a difficulty."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.compile import DSL
from tests.gradient.differences import (
    Case,
    checked_file,
    inputs_by,
    is_differentiable,
    kernel_of,
)

PROGRAMS: Final = Path(__file__).parent / "programs.kern"
VECTORS: Final = Path(__file__).parent / "vectors.kern"
LAYERS: Final = Path(__file__).parent / "layers.kern"
STRUCTS: Final = Path(__file__).parent / "structs.kern"

FILES_OF_DSL: Final = sorted(
    p.stem for p in DSL.glob("*.kern") if p.stem != "recurrence"
)

_SIZES: Final[dict[str, dict[str, int]]] = {
    "conv1d": {"w": 7, "s": 3},
    "conv1d_gradient": {"w": 7, "s": 3},
    "conv2d": {"b": 2, "h": 5, "w": 4, "r": 3, "s": 2},
    "conv2d_bias": {"h": 5, "w": 6, "r": 3, "s": 2},
    "conv2d_grouped": {"channels": 4, "c": 2, "o": 4, "h": 5, "w": 4},
    "depthwise_conv2d": {"h": 5, "w": 6},
    "depthwise_conv2d_gradient": {"h": 5, "w": 6},
    "conv2d_kernel_gradient": {"h": 5, "w": 6},
    "max_pool2d_gradient": {"h": 5, "w": 6},
    "max_pool2d": {"h": 5, "w": 6},
    "avg_pool2d": {"h": 5, "w": 6},
    "rotary": {"d": 6, "r": 2},
    "rotary_gradient": {"d": 6, "r": 2},
    "rotary_interleaved": {"d": 6, "r": 2},
    "rotary_interleaved_gradient": {"d": 6, "r": 2},
    "grouped_query_attention": {"h": 4, "r": 2, "t": 5, "s": 3},
    "grouped_query_attention_gradient": {"h": 4, "r": 2, "t": 5, "s": 3},
    "grouped_query_attention_kept": {"h": 4, "r": 2, "t": 5, "s": 3},
    "grouped_query_attention_backward": {"h": 4, "r": 2, "t": 5, "s": 3},
    "causal_attention": {"s": 3, "t": 4},
    "causal_attention_kept": {"s": 3, "t": 4},
    "causal_attention_backward": {"s": 3, "t": 4},
    "causal_attention_gradient": {"s": 3, "t": 4},
    "embed_text": {"s": 3, "m": 4},
    "split_heads": {"e": 4},
    "pixel_shuffle": {"b": 1, "c": 4, "h": 2, "w": 3},
    "pixel_unshuffle": {"h": 4, "w": 6},
    "pixel_shuffle_by_2": {"c": 8, "h": 2, "w": 3},
    "pixel_unshuffle_by_2": {"c": 2, "h": 4, "w": 6},
    "channel_shuffle_by_4": {"c": 8},
    "channel_shuffle": {"c": 6},
    "halves": {"n": 5, "m": 2},
    "split": {"e": 6},
    "window": {"n": 7, "w": 3},
    "strided": {"n": 8, "w": 3},
    "strided_border": {"n": 7, "w": 3},
    "replicated": {"h": 5, "w": 6},
    "patches": {"h": 6, "w": 5, "r": 3},
    "every_third": {"n": 8},
    "heads": {"h": 5, "r": 2},
    "groups": {"h": 6, "r": 2},
    "fixed": {"n": 2},
    "ramps": {"k": 3},
    "every_other": {"n": 6},
    "toeplitz": {"n": 4},
    "segment_softmax": {"n": 7},
    "sampled": {"h": 6, "w": 6, "n": 3},
}

_VALUES: Final[dict[str, dict[str, Any]]] = {
    "channel_shuffle": {"r": 3},
    "ring": {"step": 2},
    "replicated": {"far": 2},
    "conv2d": {"stride": 2, "pad": 1},
    "conv2d_input_gradient": {"h_len": 5, "w_len": 6},
    "conv2d_kernel_gradient": {"r_len": 3, "s_len": 2},
    "avg_pool2d_gradient": {"h_len": 5, "w_len": 6},
    "clamp": {"low": 0.5, "high": 1.5},
    "slice_rows": {"start": 1},
    "slice_columns": {"start": 1},
    "ramps": {"steps": 4},
    "segment_softmax": {"parts": 4},
    "overlap_add": {"hop": 2},
}

NO_GRADIENT: Final = {
    ("relu_gradient", "x"),
    ("leaky_relu_gradient", "x"),
    ("max_pool2d_gradient", "x"),
    ("max_pool2d_gradient", "y"),
}
"""What is 0 wherever there is a derivative: the second one of a line with a kink."""


def path_of(file: str) -> Path:
    """Return the path of a file of dsl/, or of the programs."""
    own = {
        "programs": PROGRAMS,
        "vectors": VECTORS,
        "structs": STRUCTS,
        "layers": LAYERS,
    }
    return own.get(file) or DSL / f"{file}.kern"


def case_of(file: str, name: str) -> Case:
    """Return a kernel of a file of dsl/, or of the programs, by all that it can be by."""
    module = checked_file(path_of(file))
    kernel = kernel_of(module, name)
    by = tuple(x for x in inputs_by(kernel) if (name, x) not in NO_GRADIENT)
    sizes, values = _SIZES.get(name, {}), _VALUES.get(name, {})
    return Case(module, kernel, by, sizes=sizes, values=values)


def kernels_of(*files: str) -> list[tuple[str, str]]:
    """Return the names of all kernels of some files that have gradients."""
    return [
        (file, kernel.name)
        for file in files
        for kernel in checked_file(path_of(file)).kernels
        if is_differentiable(kernel)
    ]


def all_of_dsl() -> list[tuple[str, str]]:
    """Return the names of all kernels of dsl/ that have gradients: not recurrences."""
    return kernels_of(*FILES_OF_DSL)
