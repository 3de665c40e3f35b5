"""PyTorch as a peer: on CUDA or on the CPU.

Products are of full float32: TensorFloat-32 is off.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeVar, cast, final

from kerngen.bench.arguments import Sizes, rotations, row_starts
from kerngen.bench.case import BenchCase
from kerngen.bench.measure import Clock, Clocks, Launch, WallClock
from kerngen.bench.peers.find import Peer
from kerngen.bench.system_sizes import FEED_FORWARD, SORT, STEP, TOPK, step_lengths

T = TypeVar("T")

Twin: TypeAlias = Callable[[Any, list[Any]], Any]
"""A function of the module torch and its arguments."""


def _attention(torch: Any, x: list[Any], **options: bool) -> Any:
    """Return attention of q, k and v.

    One query that is decoded sees all keys, so it needs no mask: PyTorch's causal mask is
    for as many queries as keys.
    """
    return torch.nn.functional.scaled_dot_product_attention(*x, **options)


TWINS: Final[Mapping[str, tuple[str, Twin]]] = {
    "matmul.matmul_nn": ("mk kn", lambda t, x: t.mm(x[0], x[1])),
    "matmul.matmul_nt": ("mk nk", lambda t, x: t.mm(x[0], x[1].T)),
    "matmul.matmul_tn": ("km kn", lambda t, x: t.mm(x[0].T, x[1])),
    "half.matmul_nn_wide": ("mk kn", lambda t, x: t.mm(x[0], x[1])),
    "half.matmul_nt_wide": ("mk nk", lambda t, x: t.mm(x[0], x[1].T)),
    "gemv.gemv": ("nk k", lambda t, x: t.mv(x[0], x[1])),
    "gemv.gemv_t": ("nk n", lambda t, x: t.mv(x[0].T, x[1])),
    "half.gemv": ("nk k", lambda t, x: t.mv(x[0], x[1])),
    "elementwise.add": ("n n -> n", lambda t, x: t.add(x[0], x[1], out=x[2])),
    "reduction.sum": ("n", lambda t, x: t.sum(x[0])),
    "reduction.sum_squares": ("n", lambda t, x: t.linalg.vector_norm(x[0])),
    "scan.cumsum": ("n", lambda t, x: t.cumsum(x[0], 0)),
    "scan.cumsum_rows": ("mn", lambda t, x: t.cumsum(x[0], 1)),
    "scan.cumsum_columns": ("mn", lambda t, x: t.cumsum(x[0], 0)),
    "softmax.softmax": ("mn", lambda t, x: t.softmax(x[0], -1)),
    "attention.attention": ("bhsd bhtd bhte", _attention),
    "attention.causal_attention": (
        "bhsd bhtd bhte",
        lambda t, x: _attention(t, x, is_causal=True),
    ),
    "attention.grouped_query_attention": (
        "bhsd brtd brte",
        lambda t, x: _attention(t, x, enable_gqa=True),
    ),
    "norm.layernorm": (
        "mn n n",
        lambda t, x: t.nn.functional.layer_norm(x[0], x[1].shape, x[1], x[2]),
    ),
    "norm.rmsnorm": (
        "mn n",
        lambda t, x: t.nn.functional.rms_norm(x[0], x[1].shape, x[1]),
    ),
    "indexing.argmax": ("mn", lambda t, x: t.argmax(x[0], -1)),
    SORT: ("n", lambda t, x: t.sort(x[0])),
}
"""The arguments by their dims, and the function of them: "mk kn" is `[m, k]`, `[k, n]`.

Kernels in f16 are compared with PyTorch in f32. Results are new tensors from PyTorch's own
pool, which gives it the same memory each time, except that an addition writes to its third
argument: behind "->", which is the same for all sets of inputs.
"""


def _added(torch: Any, terms: Any, keys: Any, bins: int) -> Any:
    """Return sums of rows by key; the order in which PyTorch adds varies between calls."""
    total = torch.zeros((bins, *terms.shape[1:]), device=terms.device)
    return total.index_add_(0, keys, terms)


Keyed: TypeAlias = Callable[[Any, list[Any], Any, int], Any]
"""A function of the module torch, the terms, their keys, and the number of bins."""

KEYED: Final[Mapping[str, tuple[str, str, Keyed]]] = {
    "statistics.bincount": (
        "",
        "bins",
        lambda t, _, keys, bins: t.bincount(keys, minlength=bins),
    ),
    "scatter.bincount_weighted": (
        "n",
        "bins",
        lambda t, x, keys, bins: _added(t, x[0], keys, bins),
    ),
    "indexing.embedding_gradient": (
        "nd",
        "v_len",
        lambda t, x, keys, bins: t.ops.aten.embedding_dense_backward(
            x[0], keys, bins, -1, False
        ),
    ),
}
"""Reductions by n keys: the dims of the terms, the name of the number of bins, a function."""


def _steps(sizes: Sizes) -> tuple[int, int, int]:
    """Return the stride, the padding and the dilation of a convolution, in PyTorch's order."""
    return sizes["stride"], sizes["pad"], sizes["dilation"]


Convolved: TypeAlias = Callable[[Any, list[Any], Sizes], Any]
"""A function of the module torch, its arguments and the sizes of a convolution."""

CONVOLVED: Final[Mapping[str, tuple[tuple[str, str], Convolved]]] = {
    "conv.conv2d": (
        ("b c h w", "o c r s"),
        lambda t, x, s: t.conv2d(x[0], x[1], None, *_steps(s)),
    ),
    "conv.depthwise_conv2d": (
        ("b c h w", "c r s"),
        lambda t, x, s: t.conv2d(x[0], x[1][:, None], None, *_steps(s), s["c"]),
    ),
    "conv.conv2d_input_gradient": (
        ("o c r s", "b o p t"),
        lambda t, x, s: t.nn.grad.conv2d_input(
            (s["b"], s["c"], s["h_len"], s["w_len"]), x[0], x[1], *_steps(s)
        ),
    ),
    "conv.conv2d_kernel_gradient": (
        ("b c h w", "b o p t"),
        lambda t, x, s: t.nn.grad.conv2d_weight(
            x[0], (s["o"], s["c"], s["r_len"], s["s_len"]), x[1], *_steps(s)
        ),
    ),
}
"""Convolutions and their gradients: the dims of both arguments, and a function of them."""

SPARSE: Final = "scatter.spmv_csr"

CAPTURED: Final = frozenset((*TWINS, *CONVOLVED, FEED_FORWARD))
"""Counterparts that a CUDA graph can hold: none of their launches waits for the host."""

BACKWARD: Final[Mapping[str, bool]] = {
    "attention.attention_backward": False,
    "attention.causal_attention_backward": True,
}
"""Gradients of attention whose forward pass is not timed, and whether they are causal."""


@final
class Torch:
    """PyTorch on one device, eager or `compiled` by `torch.compile`."""

    def __init__(
        self, torch: ModuleType, device: str, *, compiled: bool = False
    ) -> None:
        """Use the module on 'cuda' or 'cpu'."""
        self._torch: Any = torch
        self._device = device
        self._compiled = compiled
        self.name = f"{'torch.compile' if compiled else 'PyTorch'} ({device.upper()})"
        self.version = str(self._torch.__version__)
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._torch.backends.cudnn.allow_tf32 = False

    @contextmanager
    def clock(self, case: BenchCase) -> Generator[Clock | None]:
        """Yield a clock for a case's counterpart, by CUDA's events or the host's clock."""
        launch = self._launch(case)
        if launch is None:
            yield None
        elif self._device == "cuda":
            finish = self._torch.zeros((), device=self._device).item
            loop = WallClock(launch, self._torch.cuda.synchronize)
            read = WallClock(launch, finish, reads=True)
            try:
                yield Clocks(self._events(case, launch), loop, read)
            finally:
                del launch, loop, read
                self._torch.cuda.empty_cache()
        else:
            yield WallClock(launch, lambda: None)

    def _events(self, case: BenchCase, launch: Launch) -> Clock:
        """Return CUDA's clock, of launches as a graph if they can be one.

        One by one they are behind the host: a product of 77 by 768 by 768 takes 10 us, and
        PyTorch takes 22 us to start it.  A graph repeats the launches of its first time, with the
        same inputs.
        """
        cuda = self._torch.cuda
        is_captured = case.twin in CAPTURED
        turn = 0

        def launched(launches: int) -> None:
            nonlocal turn
            for number in range(turn, turn + launches):
                launch(number)
            turn += launches

        @lru_cache(maxsize=1)
        def captured(launches: int) -> Callable[[], None]:
            launched(1)  # compiles, and makes the libraries' workspaces
            cuda.synchronize()
            graph = cuda.CUDAGraph()
            with cuda.graph(graph):
                launched(launches)
            return cast("Callable[[], None]", graph.replay)

        def clock(launches: int) -> float:
            run = captured(launches) if is_captured else partial(launched, launches)
            begin, end = cuda.Event(True), cuda.Event(True)
            begin.record()
            run()
            end.record()
            cuda.synchronize()
            return float(begin.elapsed_time(end)) / 1e3

        return clock

    def _launch(self, case: BenchCase) -> Launch | None:
        composed = {
            STEP: self._step,
            FEED_FORWARD: self._feed_forward,
            "optim.adamw": self._adamw,
            TOPK: self._topk,
            SPARSE: self._sparse,
        }
        if case.twin in composed and not self._compiled:
            return composed[case.twin](case.sizes)
        if case.twin in KEYED and not self._compiled:
            return self._keyed(case)
        if case.twin in BACKWARD and not self._compiled:
            return self._backward(case)
        if case.twin in CONVOLVED and not self._compiled:
            return self._convolved(case)
        if case.twin not in TWINS:
            return None
        axes, function = TWINS[case.twin]
        read, _, written = axes.partition(" -> ")
        outputs = [self._random(case.sizes, dims) for dims in written.split()]
        sets = self._sets(
            case,
            lambda: [
                *(self._random(case.sizes, dims) for dims in read.split()),
                *outputs,
            ],
        )
        torch = self._torch
        if self._compiled:
            # PyTorch keeps few compiled forms of a function, and beyond them runs it eagerly.
            torch.compiler.reset()

            def call(*x: object) -> object:
                result: object = function(torch, [*x])
                return result

            compiled = torch.compile(call, dynamic=False)
            return lambda turn: compiled(*sets[turn % len(sets)])
        return lambda turn: function(torch, sets[turn % len(sets)])

    def _keyed(self, case: BenchCase) -> Launch:
        axes, name, function = KEYED[case.twin]
        torch, bins, n = self._torch, case.sizes[name], case.sizes["n"]
        sets = self._sets(
            case,
            lambda: (
                [self._random(case.sizes, dims) for dims in axes.split()],
                torch.randint(bins, (n,), device=self._device),
            ),
        )

        def launch(turn: int) -> object:
            terms, keys = sets[turn % len(sets)]
            result: object = function(torch, terms, keys, bins)
            return result

        return launch

    def _convolved(self, case: BenchCase) -> Launch:
        axes, function = CONVOLVED[case.twin]
        sets = self._sets(
            case, lambda: [self._random(case.sizes, dims.split()) for dims in axes]
        )

        def launch(turn: int) -> object:
            result: object = function(self._torch, sets[turn % len(sets)], case.sizes)
            return result

        return launch

    def _backward(self, case: BenchCase) -> Launch:
        torch, is_causal = self._torch, BACKWARD[case.twin]

        # The forward pass runs here, once; a launch computes the gradients alone.
        def made() -> tuple[Any, list[Any], Any]:
            dims = "bhsd", "bhtd", "bhte"
            x = [self._random(case.sizes, each).requires_grad_() for each in dims]
            y = _attention(torch, x, is_causal=is_causal)
            return y, x, torch.rand_like(y)

        sets = self._sets(case, made)

        def launch(turn: int) -> object:
            y, x, dy = sets[turn % len(sets)]
            result: object = torch.autograd.grad(y, x, dy, retain_graph=True)
            return result

        return launch

    def _sets(self, case: BenchCase, made: Callable[[], T]) -> list[T]:
        """Return the sets of arguments that launches rotate, as many as for a context."""
        kind = "gpu" if self._device == "cuda" else "software"
        return [made() for _ in range(rotations(case.rotated, kind))]

    def _random(self, sizes: Sizes, dims: Iterable[str]) -> Any:
        shape = [sizes[dim] for dim in dims]
        return self._torch.rand(shape, device=self._device)

    def _parameter(self, length: int) -> Any:
        parameter = self._torch.rand(length, device=self._device, requires_grad=True)
        parameter.grad = self._torch.rand(length, device=self._device)
        return parameter

    def _adamw(self, sizes: Sizes) -> Launch:
        optimizer = self._torch.optim.AdamW([self._parameter(sizes["n"])], fused=True)

        def launch(turn: int) -> None:
            del turn
            optimizer.step()

        return launch

    def _topk(self, sizes: Sizes) -> Launch:
        x, k = self._random(sizes, "mn"), sizes["k"]
        return lambda _: self._torch.topk(x, k, -1)

    def _sparse(self, sizes: Sizes) -> Launch:
        torch, n, rows = self._torch, sizes["n"], sizes["m"] - 1
        starts = torch.from_numpy(row_starts(rows, n, 0).astype("int32"))
        columns = torch.randint(
            sizes["k"], (n,), dtype=torch.int32, device=self._device
        )
        x, values = self._random(sizes, "k"), self._random(sizes, "n")
        parts = starts.to(self._device), columns, values
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that they are in beta state
            matrix = torch.sparse_csr_tensor(*parts, (rows, sizes["k"]))
        return lambda _: matrix @ x

    def _step(self, sizes: Sizes) -> Launch:
        parameters = [self._parameter(n) for n in step_lengths(sizes)]
        optimizer = self._torch.optim.AdamW(parameters, fused=True)
        clip = self._torch.nn.utils.clip_grad_norm_

        def launch(turn: int) -> None:
            del turn
            clip(parameters, 1.0, foreach=True)
            optimizer.step()

        return launch

    def _feed_forward(self, sizes: Sizes) -> Launch:
        m, width, inner = sizes["m"], sizes["width"], sizes["inner"]
        linear = self._torch.nn.functional.linear
        silu = self._torch.nn.functional.silu
        wide = {"inner": inner, "width": width, "m": m}

        def weight(rows: str, columns: str) -> Any:
            shape = [wide[rows], wide[columns]]
            return self._torch.rand(shape, device=self._device) / width

        layers = [
            (
                weight("inner", "width"),
                weight("inner", "width"),
                weight("width", "inner"),
            )
            for _ in range(sizes["layers"])
        ]
        first = weight("m", "width")

        def launch(turn: int) -> None:
            del turn
            x = first
            for gate, up, down in layers:
                x = linear(silu(linear(x, gate)) * linear(x, up), down)

        return launch


def make(kind: str) -> Peer:
    """Return the peer on CUDA beside a GPU, else on the CPU.

    Beside llvmpipe, Triton is kept from being imported: both have an LLVM of their own, and
    the process would crash.
    """
    if kind != "gpu":
        sys.modules.setdefault("triton", cast("ModuleType", None))
    torch = import_module("torch")
    on_cuda = kind == "gpu" and torch.cuda.is_available()
    return Torch(torch, "cuda" if on_cuda else "cpu")
