"""Several processes that train together: who this one is, and how they communicate.

    torchrun --nproc-per-node 2 -m examples.characters --distributed
    mpiexec -n 2 python -m mpi4py -m examples.characters --distributed

kerngen hands out arrays, and an engine that is there already moves them: torch.distributed
with gloo where torchrun started the process, mpi4py elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.train import Exchange, ProcessGroup

Arrays = list[NDArray[Any]]

PATIENCE = 120.0
"""Seconds until a rank gives up the wait for another; the first step compiles shaders."""


class DistributedError(Exception):
    """The processes can't train together."""


@final
@dataclass(frozen=True)
class Ranks:
    """This process among those that train together.

    `local` is its number among those of its host.  `mean` replaces arrays by their means
    over the ranks; `reduce_scatter`, the exchange of a sharded trainer, does so for this
    rank's part of each.
    """

    group: ProcessGroup
    local: int
    mean: Exchange
    reduce_scatter: Exchange

    @property
    def rank(self) -> int:
        """The number of this process."""
        return self.group.rank

    def mean_of(self, number: float) -> float:
        """Return the mean of a number of each rank."""
        array = np.array([number], np.float32)
        self.mean([array])
        return float(array[0])

    @property
    def adapter(self) -> int | None:
        """The number of this process's adapter: of a host with several, one for each.

        None if KERNGEN_ADAPTER chooses, or if there is none.
        """
        adapters = gpu.adapters()
        if os.environ.get("KERNGEN_ADAPTER") or not adapters:
            return None
        best = [each for each in adapters if each.kind == adapters[0].kind]
        return best[self.local % len(best)].number

    def open_context(self) -> gpu.Context:
        """Open the adapter of this process."""
        return gpu.open(adapter=self.adapter)


@final
class Arrivals:
    """The count of exchanges that each rank has begun, in torch.distributed's store."""

    def __init__(self, store: Any) -> None:
        """Begin with no exchange."""
        self._store = store
        self._own: dict[int, int] = {}

    def __getitem__(self, rank: int) -> int:
        """Return the count of a rank; its own costs no message."""
        if rank in self._own or not self._store.check([str(rank)]):
            return self._own.get(rank, 0)
        return int(self._store.get(str(rank)))

    def __setitem__(self, rank: int, number: int) -> None:
        """Set the own count."""
        self._own[rank] = number
        self._store.set(str(rank), str(number))


@contextmanager
def joined() -> Generator[Ranks, None, None]:
    """Join the processes that were started together, by the engine that started them.

    Raises:
        DistributedError: If the engine is not installed, or they don't find each other.
    """
    by_torch = {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()
    engine, package = (_torch, "torch") if by_torch else (_mpi, "mpi4py")
    try:
        ranks, leave = engine()
    except ImportError as error:
        raise DistributedError(
            f"--distributed needs {package}: {error}. Start the processes with torchrun, "
            "or with mpiexec; 'pip install kerngen[distributed]' adds mpi4py and MPICH."
        ) from error
    yield ranks
    leave()  # not after an error: the other ranks wait elsewhere


def _torch() -> tuple[Ranks, Callable[[], None]]:
    """Join by torch.distributed, on the CPU."""
    torch: Any = import_module("torch")
    dist: Any = import_module("torch.distributed")
    find: Any = import_module("torch.distributed.rendezvous")
    patience = timedelta(seconds=PATIENCE)
    store, rank, size = next(find.rendezvous("env://", timeout=patience))
    # torchrun keeps its store when it starts processes again: without a prefix for each
    # time, one that is early finds the addresses of those that are gone (torch 2.13).
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"attempt{attempt}", store)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=patience
    )

    def each(
        function: Callable[..., object],
    ) -> Callable[[Arrays], None]:
        def run(arrays: Arrays) -> None:
            for array in arrays:
                function(torch.from_numpy(array))

        run.__name__ = function.__name__  # for errors
        return run

    def all_gather(whole: Any) -> None:
        # Each rank sends its part in place: 0.4 s for 400 MB and two processes on one host.
        # gloo's own gathering copies, and takes 2.1 s.
        parts = enumerate(whole.chunk(size))
        works = [dist.broadcast(part, src=k, async_op=True) for k, part in parts]
        for work in works:
            work.wait()

    def mean(whole: Any) -> None:
        dist.all_reduce(whole)
        whole.div_(size)  # NumPy takes a hundred times as long where it is float16

    def reduce_scatter(whole: Any) -> None:
        dist.all_reduce(whole)  # gloo's reduce_scatter takes three times as long
        whole.chunk(size)[rank].div_(size)

    group = ProcessGroup(
        rank,
        size,
        each(dist.all_reduce),
        each(all_gather),
        arrivals=Arrivals(dist.PrefixStore("arrivals", store)),
    )
    local = int(os.environ.get("LOCAL_RANK", "0"))
    return (
        Ranks(group, local, each(mean), each(reduce_scatter)),
        dist.destroy_process_group,
    )


def _mpi() -> tuple[Ranks, Callable[[], None]]:
    """Join by MPI."""
    mpi: Any = import_module("mpi4py.MPI")
    comm = mpi.COMM_WORLD
    rank, size = int(comm.rank), int(comm.size)

    def all_reduce(arrays: Arrays) -> None:
        for array in arrays:
            comm.Allreduce(mpi.IN_PLACE, array)

    def mean(arrays: Arrays) -> None:
        all_reduce(arrays)
        for array in arrays:
            np.divide(array, size, out=array)

    def all_gather(arrays: Arrays) -> None:
        for array in arrays:
            comm.Allgather(mpi.IN_PLACE, array)

    def reduce_scatter(arrays: Arrays) -> None:
        for array in arrays:
            part = np.split(array, size)[rank]
            total = np.empty_like(part)
            comm.Reduce_scatter_block(array, total)
            np.divide(total, size, out=part)

    host = comm.Split_type(mpi.COMM_TYPE_SHARED)
    arrivals = _shared_by(mpi, host) if host.size == size else None
    # MPI waits for ever, so the trainer ends the wait.
    group = ProcessGroup(rank, size, all_reduce, all_gather, PATIENCE, arrivals)
    return Ranks(group, int(host.rank), mean, reduce_scatter), comm.Barrier


def _shared_by(mpi: Any, host: Any) -> NDArray[np.int64]:
    """Return zeros, one for each process of a host, in memory that all of them share."""
    nbytes = 8 * host.size if host.rank == 0 else 0
    window = mpi.Win.Allocate_shared(nbytes, 8, comm=host)
    memory, _ = window.Shared_query(0)
    counts: NDArray[np.int64] = np.ndarray(host.size, np.int64, memory)
    if host.rank == 0:
        counts.fill(0)
    host.Barrier()
    return counts
