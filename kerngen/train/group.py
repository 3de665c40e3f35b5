"""Process groups: processes that train one network together.

    group = ProcessGroup(rank, size, all_reduce)
    trainer = Trainer(ctx, parameters, group=group)

kerngen moves no data between processes.  Functions of the caller's do, by
torch.distributed, MPI or anything else: each changes a list of arrays in place, and is
called by all ranks alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime import ArgumentError, DtypeError
from kerngen.runtime.values.kinds import kind_of
from kerngen.train.errors import ExchangeError

Exchange: TypeAlias = Callable[[list[NDArray[Any]]], object]
"""A function that changes contiguous arrays in place, alike on all ranks; returns None."""


class Arrivals(Protocol):
    """A number for each rank that all ranks can read, such as an array in shared memory."""

    def __getitem__(self, rank: int, /) -> int:
        """Return the number of a rank, without waiting for it."""
        ...

    def __setitem__(self, rank: int, number: int, /) -> None:
        """Set the number of this rank."""
        ...


@final
@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """This process's rank among the processes that train together.

    With a group, the ranks compare parameters, optimizers and steps, and errors name the
    rank.  `timeout` bounds each exchange, which then runs in a thread of its own.  With
    `arrivals`, an exchange that fails names the ranks that have not come to it.
    """

    rank: int
    """The number of this process, from 0."""
    size: int
    """The number of processes."""
    all_reduce: Exchange
    """Replaces each array by its sum over the ranks; it gets a short array, for notes."""
    all_gather: Exchange | None = None
    """Fills each array, of which this rank has part `rank` of `size`; for sharding only."""
    timeout: float | None = None
    """The seconds that an exchange may take; without it there is no limit."""
    arrivals: Arrivals | None = None
    """Counts the exchanges that each rank has begun, from 0; kerngen writes it."""

    def __post_init__(self) -> None:
        """Refuse an invalid rank or size."""
        for name in ("rank", "size"):
            if type(getattr(self, name)) is not int:
                raise DtypeError(
                    f"ProcessGroup: {name} is {kind_of(getattr(self, name))}; expected "
                    "an int."
                )
        if not 0 <= self.rank < self.size:
            raise ArgumentError(
                f"ProcessGroup: rank {self.rank} of {self.size}; expected a rank from 0 "
                "on, below the size."
            )
        if self.timeout is not None and not self.timeout > 0:
            raise ArgumentError(
                f"ProcessGroup: the timeout is {self.timeout}; expected seconds above 0."
            )

    @property
    def name(self) -> str:
        """This rank, for errors."""
        return f"rank {self.rank} of {self.size}"

    def arrive(self) -> None:
        """Show the other ranks, by `arrivals`, that this one begins an exchange."""
        if self.arrivals is not None:
            self.arrivals[self.rank] = int(self.arrivals[self.rank]) + 1

    def absent(self) -> str:
        """Return the ranks that have not begun this exchange, as a sentence, or ""."""
        if self.arrivals is None:
            return ""
        own = int(self.arrivals[self.rank])
        found = [
            str(rank) for rank in range(self.size) if int(self.arrivals[rank]) < own
        ]
        match found:
            case []:
                return "All ranks have come to it, so one failed or hangs within. "
            case [one]:
                return f"Rank {one} has not come to it. "
            case [*_]:
                return f"Ranks {', '.join(found)} have not come to it. "

    def rows(self, own: NDArray[np.float32], where: str) -> NDArray[np.float32]:
        """Return one row of numbers from each rank; `own` is this rank's.

        Each rank fills its own row, and the sum over ranks has all of them.  A 1 before
        the numbers proves that a rank took part, and that the rows were added up:

            rank 0          rank 1          the sum
            1 own           0 0             1 own of rank 0
            0 0             1 own           1 own of rank 1

        Raises:
            ExchangeError: If a rank's row is missing, or `all_reduce` computes no sums.
        """
        rows = np.zeros((self.size, 1 + own.size), np.float32)
        rows[self.rank] = [1.0, *own]
        exchange(self.all_reduce, [rows.reshape(-1)], where, self)
        for rank, present in enumerate(rows[:, 0].tolist()):
            if present != 1.0:
                raise ExchangeError(
                    f"{where}: the all_reduce of the group gave {present:g} for the 1 of "
                    f"rank {rank}; expected the sums over all {self.size} ranks. The "
                    "rank took no part, or it is no sum: divide in your own exchange."
                )
        return rows[:, 1:]


_ADVICE: Final = (
    "Start all processes anew from a checkpoint: the ranks no longer belong together."
)


def exchange(
    function: Exchange,
    arrays: list[NDArray[Any]],
    where: str,
    group: ProcessGroup | None,
) -> None:
    """Call the caller's function on arrays, and check that it only changed numbers.

    Raises:
        ExchangeError: If it raises, does not return in time, or returns something; if an
            array was replaced, or has another shape or dtype now.
    """
    given, before = list(arrays), [(each.shape, each.dtype) for each in arrays]
    by = f" on {group.name}" if group else ""
    called = getattr(function, "__name__", "the function")
    try:
        if group is not None:
            group.arrive()
        result = _bounded(function, given, group.timeout if group else None)
    except TimeoutError as error:
        seconds = f"{group.timeout:g} s" if group and group.timeout else "its time"
        raise ExchangeError(
            f"{where}{by}: '{called}' did not return within {seconds} ({error}), so "
            f"another rank is late or gone. {_absent(group)}{_ADVICE}"
        ) from error
    except Exception as error:
        raise ExchangeError(
            f"{where}{by}: '{called}' raised {type(error).__name__}: {error}. "
            f"{_absent(group)}{_ADVICE}"
        ) from error
    fault = _fault(given, arrays, before, result)
    if fault:
        raise ExchangeError(f"{where}{by}: '{called}' {fault}")


def _absent(group: ProcessGroup | None) -> str:
    """Name the ranks that are missing, as far as they are known."""
    try:
        return group.absent() if group is not None else ""
    except (LookupError, OSError, RuntimeError, ValueError) as error:
        return f"Who is missing can't be read: {type(error).__name__}: {error}. "


def _fault(
    given: list[NDArray[Any]],
    arrays: list[NDArray[Any]],
    before: list[tuple[tuple[int, ...], np.dtype[Any]]],
    result: object,
) -> str:
    """Return the fault of a caller's function, or "" if it left arrays as it should."""
    if result is not None:
        return (
            f"returned {kind_of(result)}; expected None, once all arrays are changed in "
            "place. Wait for what is under way before you return."
        )
    if len(given) != len(arrays) or any(
        one is not other for one, other in zip(given, arrays, strict=True)
    ):
        return "replaced an array of the list; write into it: array[...] = result."
    for array, (shape, dtype) in zip(arrays, before, strict=True):
        if (array.shape, array.dtype) != (shape, dtype):
            return (
                f"changed an array of shape {shape} and dtype {dtype} to shape "
                f"{array.shape} and dtype {array.dtype}; write into it, and leave it so."
            )
    return ""


def _bounded(
    function: Exchange, arrays: list[NDArray[Any]], timeout: float | None
) -> object:
    """Call a function; raise TimeoutError if it takes longer than `timeout` seconds."""
    if timeout is None:
        return function(arrays)
    results: list[object] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function(arrays))
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            errors.append(error)

    # A daemon, so that a process whose exchange hangs can still end.
    thread = Thread(target=run, name="exchange", daemon=True)
    thread.start()
    thread.join(timeout)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError("it still runs")
    return results[0]
