"""The table of standard kernels to time, with sizes for GPUs and for software."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from typing import Final, final

from kerngen.bench.arguments import ANY, Integers, Sizes, own_sizes
from kerngen.bench.case import BenchCase, kernel_case
from kerngen.runtime.calls.choices import KernelFunction, kernel_of


def shapes(names: str, *sizes: tuple[int, ...]) -> tuple[Sizes, ...]:
    """Return sizes by the names of the dims."""
    return tuple(dict(zip(names.split(), each, strict=True)) for each in sizes)


@final
@dataclass(frozen=True, slots=True)
class Standard:
    """A row of the table: a kernel, its operations, and the sizes to time it at.

    `sizes` are for GPUs, `small` for other adapters. If only one size is timed, as by
    `--quick`, it is the first.
    """

    path: str
    operations: Callable[[Sizes], int]
    sizes: tuple[Sizes, ...]
    small: tuple[Sizes, ...] = field(default=())
    integers: Integers = ANY

    @property
    def function(self) -> KernelFunction:
        """The generated function."""
        return find_function(self.path)

    @property
    def name(self) -> str:
        """The kernel's name in tables; an f16 kernel is named like its f32 form."""
        module, _, name = self.path.partition(".")
        return f"{module}.{name}" if module == "half" else name

    def case(self, sizes: Sizes) -> BenchCase:
        """Return the case for some sizes."""
        function = self.function
        own = own_sizes(kernel_of(function), sizes)
        operations = self.operations(own)
        return kernel_case(
            function,
            own,
            operations,
            name=self.name,
            twin=self.path,
            integers=self.integers,
        )

    def cases(self, *, small: bool) -> Iterator[BenchCase]:
        """Yield the cases at a GPU's sizes, or at `small` ones."""
        return (self.case(sizes) for sizes in (self.small if small else self.sizes))


def find_function(path: str) -> KernelFunction:
    """Return the function of a standard kernel, by `module.name`."""
    module, _, name = path.partition(".")
    function: KernelFunction = getattr(import_module(f"kerngen_kernels.{module}"), name)
    return function


def _product(sizes: Sizes) -> int:
    return 2 * prod(sizes.values())


def _attention(sizes: Sizes) -> int:
    """Return the operations of q k^T and of the product with v; softmax is left out."""
    pairs = sizes["b"] * sizes["h"] * sizes["s"] * sizes["t"]
    return 2 * pairs * (sizes["d"] + sizes["e"])


def _backward(sizes: Sizes) -> int:
    """Return the operations of five products: scores, gradients by scores, and dq, dk, dv."""
    pairs = sizes["b"] * sizes["h"] * sizes["s"] * sizes["t"]
    return 2 * pairs * (3 * sizes["d"] + 2 * sizes["e"])


def _causal(of: Callable[[Sizes], int]) -> Callable[[Sizes], int]:
    """Return the operations of causal attention: of the scores up to each query's place.

    The last of s queries sees all t keys, the one before it one fewer.
    """

    def operations(sizes: Sizes) -> int:
        s, t = sizes["s"], sizes["t"]
        return of({**sizes, "s": 1, "t": 1}) * (s * t - s * (s - 1) // 2)

    return operations


def _convolution(sizes: Sizes) -> int:
    """Return the operations of a convolution, or of one of its gradients.

    Each of the results' places adds products with all elements of the kernels.  Depthwise ones
    have one kernel for each channel, and no dim `o`.
    """
    # A gradient has the result's lengths as dims, p and t.
    high, wide = (sizes["p"], sizes["t"]) if "p" in sizes else _result_lengths(sizes)
    r, s = (sizes[x] if x in sizes else sizes[f"{x}_len"] for x in "rs")
    channels = sizes["c"] * sizes.get("o", 1)
    return 2 * sizes["b"] * channels * r * s * high * wide


def _result_lengths(sizes: Sizes) -> tuple[int, int]:
    """Return the height and width of a convolution's result."""
    pad, stride, dilation = (sizes[name] for name in ("pad", "stride", "dilation"))
    high, wide = (
        (sizes[length] + 2 * pad - dilation * (sizes[kernel] - 1) - 1) // stride + 1
        for length, kernel in (("h", "r"), ("w", "s"))
    )
    return high, wide


def _each(operations: int) -> Callable[[Sizes], int]:
    """Return a function of sizes: so many operations for each element."""
    return lambda sizes: operations * prod(sizes.values())


# Sizes of the rows below, in the order of the dims that each row names: those of products
# are m, k, n; those of attention b, h, s, d, t, e; those of convolutions b, c, h, w of the
# images, o, r, s of the kernels, pad, stride and dilation. `_ODD` has no aligned lengths, `_MEDIUM`
# is as of text encoders and small networks, `_SHALLOW` has few terms, `_SKINNY` and `_FEW` few rows,
# `_DECODED` one query, and `_SMALL...` are for other adapters than GPUs.

_SQUARE: Final = tuple((n, n, n) for n in (4096, 2048, 8192))
_ODD: Final = ((4095, 4097, 4093), (1000, 3000, 777))
_MEDIUM: Final = (
    (77, 768, 768),
    (50, 512, 512),
    (128, 784, 256),
    *((n, n, n) for n in (320, 512, 768, 1024)),
)
_SHALLOW: Final = ((501, 5, 20_001), (2047, 12, 2049))
_SKINNY: Final = tuple(
    (m, n, n) for n in (4096, 8192, 16384) for m in (1, 2, 4, 8, 16, 32, 64)
)
_FEW: Final = tuple((m, n, n) for n in (4096, 16384) for m in (1, 4, 16, 64))
_SMALL: Final = ((256, 256, 256), (512, 512, 512), (255, 257, 253), (4, 1024, 1024))
_HEADS: Final = (
    (4, 16, 2048, 64, 2048, 64),
    (1, 32, 4096, 128, 4096, 128),
    (8, 12, 197, 64, 197, 64),  # of a vision transformer, with 14 x 14 patches
)
_SMALL_HEADS: Final = ((1, 4, 256, 64, 256, 64),)
_DECODED: Final = ((1, 32, 1, 128, 8, 4096, 128),)
_SMALL_DECODED: Final = ((1, 8, 1, 64, 2, 512, 64),)
_ROWS: Final = ((4096, 4096), (128, 32768), (16384, 1024))
_SMALL_ROWS: Final = ((512, 512), (16, 4096))
_SCANNED: Final = ((8192, 8192), (65536, 1024))
_IMAGES: Final = (
    (8, 64, 56, 56, 128, 3, 3, 1, 1, 1),
    (32, 128, 28, 28, 128, 3, 3, 1, 1, 1),
    (16, 256, 14, 14, 256, 3, 3, 1, 1, 1),
    (16, 96, 48, 48, 96, 3, 3, 1, 1, 1),
    (16, 128, 28, 28, 256, 3, 3, 1, 2, 1),
    (8, 3, 224, 224, 64, 7, 7, 3, 2, 1),
    (32, 64, 56, 56, 256, 1, 1, 0, 1, 1),
    (4, 64, 256, 256, 3, 3, 3, 1, 1, 1),  # to a photograph
)
_FIRST: Final = (  # first layers: of 9 and of 27 terms, and of patches
    (64, 1, 28, 28, 32, 3, 3, 0, 1, 1),
    (64, 3, 64, 64, 32, 3, 3, 1, 1, 1),
    (32, 3, 224, 224, 96, 4, 4, 0, 4, 1),
)
_DEPTHWISE: Final = (
    (32, 128, 56, 56, 3, 3, 1, 1, 1),
    (32, 512, 14, 14, 3, 3, 1, 1, 1),
    (32, 960, 7, 7, 3, 3, 1, 1, 1),
)
_SMALL_IMAGES: Final = ((2, 16, 14, 14, 16, 3, 3, 1, 1, 1),)
_LONG: Final = tuple((2**power,) for power in (28, 20, 22, 24, 26))
_SMALL_LONG: Final = ((2**20,), (2**22,))

_KERNELS: Final = "o r s pad stride dilation"


def gradient_sizes(images: Iterable[tuple[int, ...]], names: str) -> tuple[Sizes, ...]:
    """Return the sizes of a gradient of convolutions, whose lengths h, w, r and s have `names`."""
    h, w, r, s = names.split()
    found: list[Sizes] = []
    for sizes in shapes(f"b c h w {_KERNELS}", *images):
        p, t = _result_lengths(sizes)
        lengths = {h: sizes["h"], w: sizes["w"], r: sizes["r"], s: sizes["s"]}
        others = {
            name: sizes[name] for name in ("b", "c", "o", "pad", "stride", "dilation")
        }
        found.append({**others, **lengths, "p": p, "t": t})
    return tuple(found)


STANDARD: Final = (
    Standard(
        "matmul.matmul_nn",
        _product,
        shapes("m k n", *_SQUARE, *_ODD, *_MEDIUM, *_SHALLOW, *_FEW),
        shapes("m k n", *_SMALL),
    ),
    Standard(
        "matmul.matmul_nt",
        _product,
        shapes("m k n", *_SQUARE, *_ODD, *_MEDIUM, *_SHALLOW, *_SKINNY),
        shapes("m k n", *_SMALL),
    ),
    Standard(
        "matmul.matmul_tn",
        _product,
        shapes("m k n", *_SQUARE, *_ODD, *_MEDIUM),
        shapes("m k n", *_SMALL[:3]),
    ),
    Standard(
        "half.matmul_nn_wide",
        _product,
        shapes("m k n", *_SQUARE[:2]),
        shapes("m k n", *_SMALL[:1]),
    ),
    Standard(
        "half.matmul_nt_wide",
        _product,
        shapes("m k n", *_SQUARE[:2]),
        shapes("m k n", *_SMALL[:1]),
    ),
    Standard(
        "gemv.gemv",
        _product,
        shapes("n k", *((n, n) for n in (4096, 8192, 16384))),
        shapes("n k", (1024, 1024)),
    ),
    Standard(
        "gemv.gemv_t",
        _product,
        shapes("n k", *((n, n) for n in (4096, 8192, 16384))),
        shapes("n k", (1024, 1024)),
    ),
    Standard(
        "half.gemv",
        _product,
        shapes("n k", (16384, 16384)),
        shapes("n k", (1024, 1024)),
    ),
    Standard(
        "elementwise.add",
        _each(1),
        shapes("n", *_LONG, (2**24 + 3,)),
        shapes("n", *_SMALL_LONG, (2**22 + 3,)),
    ),
    Standard(
        "optim.adamw", _each(15), shapes("n", _LONG[0]), shapes("n", _SMALL_LONG[0])
    ),
    Standard(
        "reduction.sum", _each(1), shapes("n", *_LONG[:2]), shapes("n", *_SMALL_LONG)
    ),
    Standard(
        "reduction.sum_squares",
        _each(2),
        shapes("n", _LONG[0]),
        shapes("n", _SMALL_LONG[0]),
    ),
    Standard(
        "scan.cumsum",
        _each(1),
        shapes("n", (10_000_000,), _LONG[0]),
        shapes("n", _SMALL_LONG[0]),
    ),
    Standard(
        "scan.cumsum_rows",
        _each(1),
        shapes("m n", *_SCANNED),
        shapes("m n", *_SMALL_ROWS),
    ),
    Standard(
        "scan.cumsum_columns",
        _each(1),
        shapes("m n", _SCANNED[0]),
        shapes("m n", _SMALL_ROWS[0]),
    ),
    Standard(
        "softmax.softmax",
        _each(5),
        shapes("m n", *_ROWS, (65536, 197)),
        shapes("m n", *_SMALL_ROWS),
    ),
    Standard(
        "attention.attention",
        _attention,
        shapes("b h s d t e", *_HEADS),
        shapes("b h s d t e", *_SMALL_HEADS),
    ),
    Standard(
        "attention.causal_attention",
        _causal(_attention),
        shapes("b h s d t e", *_HEADS),
        shapes("b h s d t e", *_SMALL_HEADS),
    ),
    Standard(
        "attention.grouped_query_attention",
        _causal(_attention),
        shapes("b h s d r t e", *_DECODED),
        shapes("b h s d r t e", *_SMALL_DECODED),
    ),
    Standard(
        "attention.attention_backward",
        _backward,
        shapes("b h s d t e", *_HEADS),
        shapes("b h s d t e", *_SMALL_HEADS),
    ),
    Standard(
        "attention.causal_attention_backward",
        _causal(_backward),
        shapes("b h s d t e", *_HEADS),
        shapes("b h s d t e", *_SMALL_HEADS),
    ),
    Standard(
        "conv.conv2d",
        _convolution,
        shapes(f"b c h w {_KERNELS}", *_IMAGES, *_FIRST),
        shapes(f"b c h w {_KERNELS}", *_SMALL_IMAGES),
    ),
    Standard(
        "conv.depthwise_conv2d",
        _convolution,
        shapes("b c h w r s pad stride dilation", *_DEPTHWISE),
        shapes("b c h w r s pad stride dilation", (2, 16, 14, 14, 3, 3, 1, 1, 1)),
    ),
    Standard(
        "conv.conv2d_input_gradient",
        _convolution,
        gradient_sizes(_IMAGES, "h_len w_len r s"),
        gradient_sizes(_SMALL_IMAGES, "h_len w_len r s"),
    ),
    Standard(
        "conv.conv2d_kernel_gradient",
        _convolution,
        gradient_sizes(_IMAGES, "h w r_len s_len"),
        gradient_sizes(_SMALL_IMAGES, "h w r_len s_len"),
    ),
    Standard(
        "norm.layernorm",
        _each(8),
        shapes("m n", *_ROWS),
        shapes("m n", *_SMALL_ROWS),
    ),
    Standard(
        "norm.rmsnorm",
        _each(5),
        shapes("m n", *_ROWS),
        shapes("m n", *_SMALL_ROWS),
    ),
    Standard(
        "statistics.bincount",
        lambda sizes: sizes["n"],
        shapes("n bins", *((2**26, bins) for bins in (256, 4096, 2**20))),
        shapes("n bins", (2**20, 256), (2**20, 2**16)),
        integers=Integers(below="bins"),
    ),
    Standard(
        "scatter.bincount_weighted",
        lambda sizes: sizes["n"],
        shapes("n bins", (2**26, 2**20)),
        shapes("n bins", (2**18, 4096)),
        integers=Integers(below="bins"),
    ),
    Standard(
        "scatter.spmv_csr",
        lambda sizes: 2 * sizes["n"],
        shapes("m n k", *((2**m + 1, 2**24, 2**m) for m in (20, 14))),
        shapes("m n k", (2**10 + 1, 2**16, 2**10)),
        integers=Integers("k", starts="start", entries="n", columns="column"),
    ),
    Standard(
        "indexing.embedding_gradient",
        lambda sizes: sizes["n"] * sizes["d"],
        shapes("n d v_len", (8192, 768, 50257), (16384, 1024, 50000)),
        shapes("n d v_len", (1024, 64, 2000)),
        integers=Integers(below="v_len"),
    ),
    Standard(
        "recurrence.ema",
        _each(3),
        shapes("m n", *_ROWS[:1]),
        shapes("m n", *_SMALL_ROWS[:1]),
    ),
    Standard(
        "recurrence.selective_scan",
        _each(7),
        shapes("b m d s", (8, 2048, 1024, 16)),
        shapes("b m d s", (1, 64, 64, 16)),
    ),
    Standard(
        "indexing.argmax",
        _each(1),
        shapes("m n", (16384, 4096), (8192, 8192), (2048, 32768)),
        shapes("m n", *_SMALL_ROWS),
    ),
)
"""The suite's kernels, in the order of the table that is printed."""
