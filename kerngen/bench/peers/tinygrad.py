"""tinygrad as a peer, on WebGPU (Dawn), timed by its own timestamps.

Each twin is a captured graph; inputs are not rotated, which favours it at small sizes.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from kerngen.bench.case import BenchCase
from kerngen.bench.measure import Clock
from kerngen.bench.peers.find import Peer

Twin: TypeAlias = Callable[[list[Any]], Any]

TWINS: Final[Mapping[str, tuple[str, Twin]]] = {
    "matmul.matmul_nn": ("mk kn", lambda v: v[0] @ v[1]),
    "matmul.matmul_nt": ("mk nk", lambda v: v[0] @ v[1].T),
    "matmul.matmul_tn": ("km kn", lambda v: v[0].T @ v[1]),
    "gemv.gemv": ("nk k", lambda v: v[0] @ v[1]),
    "gemv.gemv_t": ("nk n", lambda v: v[0].T @ v[1]),
    "elementwise.add": ("n n", lambda v: v[0] + v[1]),
    "reduction.sum": ("n", lambda v: v[0].sum()),
    "softmax.softmax": ("mn", lambda v: v[0].softmax()),
}
"""The arguments by their dims, and the function of them: "mk kn" is `[m, k]`, `[k, n]`."""


_LARGEST: Final = 2**28
"""Larger tensors are left out: it takes long to make their numbers."""


@final
class Tinygrad:
    """tinygrad on its WebGPU device; it searches for schedules if BEAM is set."""

    name = "tinygrad (WebGPU)"

    def __init__(self, tinygrad: Any) -> None:
        """Use the module."""
        self._tinygrad = tinygrad
        self.version = version("tinygrad")

    @contextmanager
    def clock(self, case: BenchCase) -> Generator[Clock | None]:
        """Yield a clock that adds up tinygrad's timestamps of its kernels."""
        if case.twin not in TWINS or case.largest > _LARGEST:
            yield None
            return
        axes, function = TWINS[case.twin]
        tensor = self._tinygrad.Tensor
        inputs = [
            tensor.rand(*(case.sizes[dim] for dim in each), device="WEBGPU").realize()
            for each in axes.split()
        ]

        def run(*given: Any) -> Any:
            return function([*given]).realize()

        # TinyJit runs the first call as it is, captures the second, and replays from then on.
        graph = self._tinygrad.TinyJit(run)
        for _ in range(3):
            graph(*inputs)
        counters = self._tinygrad.GlobalCounters

        def clock(launches: int) -> float:
            counters.reset()
            # At DEBUG=2 tinygrad waits for each kernel, and adds its time to the counters.
            with self._tinygrad.Context(DEBUG=2), redirect_stdout(StringIO()):
                for _ in range(launches):
                    graph(*inputs)
            return float(counters.time_sum_s)

        yield clock


def make(kind: str) -> Peer:
    """Return the peer; it finds its adapter itself."""
    del kind
    os.environ.setdefault("WEBGPU_PATH", _dawn())
    os.environ.setdefault("WEBGPU_BACKEND", "WGPUBackendType_Vulkan")
    tinygrad = import_module("tinygrad")
    import_module("tinygrad.runtime.ops_webgpu")
    return Tinygrad(tinygrad)


def _dawn() -> str:
    """Return the path of Dawn's library for this machine, if it is there."""
    found = find_spec("pydawn")
    if found is None or found.origin is None:
        raise ImportError("it needs dawn-python")
    folder = Path(found.origin).parent / "lib"
    return str(next(folder.glob(f"*{platform.machine()}.so"), folder))
