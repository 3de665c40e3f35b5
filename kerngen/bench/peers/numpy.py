"""NumPy as a peer, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.bench.arguments import rotations
from kerngen.bench.case import BenchCase
from kerngen.bench.measure import Clock, WallClock
from kerngen.bench.peers.find import Peer

Array: TypeAlias = NDArray[Any]
Twin: TypeAlias = Callable[[list[Array]], Any]


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    return np.asarray(e)


def _rmsnorm(x: Array) -> Array:
    mean = (x * x).mean(-1, keepdims=True)
    return np.asarray(x / np.sqrt(mean + np.float32(1e-5)))


TWINS: Final[Mapping[str, tuple[str, Twin]]] = {
    "matmul.matmul_nn": ("mk kn", lambda v: v[0] @ v[1]),
    "matmul.matmul_nt": ("mk nk", lambda v: v[0] @ v[1].T),
    "matmul.matmul_tn": ("km kn", lambda v: v[0].T @ v[1]),
    "gemv.gemv": ("nk k", lambda v: v[0] @ v[1]),
    "gemv.gemv_t": ("nk n", lambda v: v[0].T @ v[1]),
    "elementwise.add": ("n n", lambda v: v[0] + v[1]),
    "reduction.sum": ("n", lambda v: v[0].sum()),
    "reduction.sum_squares": ("n", lambda v: np.dot(v[0], v[0])),
    "scan.cumsum": ("n", lambda v: v[0].cumsum()),
    "scan.cumsum_rows": ("mn", lambda v: v[0].cumsum(1)),
    "scan.cumsum_columns": ("mn", lambda v: v[0].cumsum(0)),
    "softmax.softmax": ("mn", lambda v: _softmax(v[0])),
    "indexing.argmax": ("mn", lambda v: v[0].argmax(-1)),
    "norm.rmsnorm": ("mn", lambda v: _rmsnorm(v[0])),
}
"""The arguments by their dims, and the function of them: "mk kn" is `[m, k]`, `[k, n]`."""


@final
class Numpy:
    """NumPy, with as many threads as its BLAS uses."""

    name = "NumPy"
    version = np.__version__

    @contextmanager
    def clock(self, case: BenchCase) -> Generator[Clock | None]:
        """Yield a host clock for a case's counterpart."""
        if case.twin not in TWINS:
            yield None
            return
        axes, function = TWINS[case.twin]
        shapes = [tuple(case.sizes[dim] for dim in each) for each in axes.split()]
        rng = np.random.default_rng(0)
        sets = [
            [rng.random(shape, np.float32) for shape in shapes]
            for _ in range(rotations(case.rotated, "software"))
        ]
        yield WallClock(lambda turn: function(sets[turn % len(sets)]), lambda: None)


def make(kind: str) -> Peer:
    """Return the peer; it runs beside any kind of adapter."""
    del kind
    return Numpy()
