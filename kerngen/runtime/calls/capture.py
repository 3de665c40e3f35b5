"""Captures: a sequence of calls that is recorded once, and run again and again.

    with ctx.capture() as step:
        rate = step.scalar("rate", 0.1)
        optim.sgd(parameters, gradients, lr=rate)
    step.replay()           # runs the calls of the block
    step.replay(rate=0.05)  # with another number

Here is what users hold, and what both backends share; `tape.py` has what a device
records.
"""

from __future__ import annotations

import operator
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NoReturn,
    Protocol,
    cast,
    final,
    overload,
)

from kerngen.runtime.calls.scalars import check_scalars, prepare
from kerngen.runtime.calls.unknown import unknown_name
from kerngen.runtime.errors import (
    ArgumentError,
    DtypeError,
    Error,
    StateError,
    not_copied,
)
from kerngen.runtime.values.kinds import kind_of

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel

# The methods of arithmetic that declared scalars refuse, without their underscores: `__add__`,
# and of two operands `__radd__`.
_BINARY: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow")
_BITS: Final = ("lshift", "rshift", "and", "or", "xor")
_UNARY: Final = ("neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil")
_NUMPY: Final = ("array_ufunc",)
"""The method that NumPy calls for `np.float32(2) * rate` and `np.sqrt(rate)`."""


class Recorded(Protocol):
    """The recording of a capture's block, as a backend keeps it."""

    @property
    def kernels(self) -> Collection[Kernel]:
        """The kernels that the recording runs."""
        ...

    def replay(self, times: int, changes: Mapping[str, float]) -> None:
        """Replay the recording `times` times; `changes` of scalars stay for later replays.

        Raises what a call with the changed scalars would raise, before anything is recorded.
        """
        ...

    def release(self) -> None:
        """Free the memory that the recording keeps."""
        ...


@final
class Capture:
    """Calls of kernels that `ctx.capture()` recorded; `replay()` runs them.

    The block itself runs nothing.  A capture keeps the memory of all tensors that its
    calls use, until it is dropped or `close()` is called.
    """

    def __init__(self, recorded: Recorded) -> None:
        """Begin a block; use `ctx.capture()` instead."""
        self.recorded = recorded
        # The error of a replay: not None while the block is open, and after the end.
        self.ended: Callable[[], Error] | None = partial(
            StateError, "replay(): the capture's block has not ended yet."
        )
        self._declared: dict[str, bool] = {}
        """The declared scalars by name, and whether a call was given each."""
        self._is_open = True

    @overload
    def scalar(self, name: str, value: int) -> int: ...
    @overload
    def scalar(self, name: str, value: float) -> float: ...
    def scalar(self, name: str, value: float) -> float:
        """Return a number that a replay may change, by its name: `replay(rate=0.05)`.

        Pass it to kernels as it is, as one of their scalar parameters.  Arithmetic with
        it raises StateError, as the result would be the same at each replay: compute on
        the host what kernels need, and declare that.

        Raises:
            ArgumentError: If the name is taken, or is none for a keyword argument.
            DtypeError: If the value is neither an int nor a float.
            StateError: If the block has ended.
        """
        if not self._is_open:
            raise StateError("scalar(): declare scalars inside the capture's block.")
        if not name.isidentifier() or name == "times" or name in self._declared:
            raise ArgumentError(
                f"scalar(): {name!r} can't be declared; expected an identifier other "
                "than 'times', which was not declared before."
            )
        kind = _CHANGEABLE.get(type(value))
        if kind is None:
            raise DtypeError(
                f"scalar(): '{name}' is {kind_of(value)}; expected an int or a float."
            )
        self._declared[name] = False
        made: ChangeableInt | ChangeableFloat = kind(value)
        made.name, made.capture = name, self
        return made

    def replay(self, times: int = 1, **scalars: float) -> None:
        """Record the block's calls again, `times` times; scalars given here stay changed.

        As calls do, it records work and returns: they read and write the tensors that
        they were captured with, whatever these contain by then.

        Raises:
            ArgumentError: If `times` is negative.
            DtypeError: If `times` or a scalar has the wrong type.
            UniformRangeError: If a scalar is out of range.
            UnknownNameError: If no scalar of that name was declared.
            StateError: If the block has not ended, was left by an error, or the capture
                has ended: by `close()`, or since a kernel of it was reloaded.
            ContextError: If the context is closed.
            DeviceLost: If its device is lost.
        """
        if self.ended is not None:
            raise self.ended()
        count = _as_count(times)
        for name in scalars:
            if name not in self._declared:
                raise unknown_name("replay", "scalar", name, self._declared)
        if count:
            self.recorded.replay(count, scalars)

    def close(self) -> None:
        """Give up the memory that the capture keeps; it can't be replayed any more."""
        self.end(partial(StateError, "replay(): the capture was closed."))

    def end(self, why: Callable[[], Error]) -> None:
        """Refuse replays from now on, with the error that `why` returns."""
        if self._is_open or self.ended is None:
            self.ended = why
        self._is_open = False
        self.recorded.release()

    @contextmanager
    def block(self) -> Generator[None, None, None]:
        """Record the calls of the caller's block; if it fails, discard them."""
        try:
            yield
            if self._is_open:
                self._check_all_used()
        except BaseException:
            self.end(
                partial(
                    StateError,
                    "replay(): an error ended the capture's block, so that not all of "
                    "it was recorded. Capture it again.",
                )
            )
            raise
        if self._is_open:
            self._is_open, self.ended = False, None

    def changeable(self, kernel: Kernel, scalars: Sequence[object]) -> dict[int, str]:
        """Return which scalars of a call were declared by `scalar`: position to name."""
        # Found by their classes: `prepare` turns them into plain numbers later.
        slots: dict[int, str] = {}
        for slot, value in enumerate(scalars):
            if isinstance(value, ChangeableInt | ChangeableFloat):
                if value.capture is not self:
                    raise StateError(
                        f"{kernel.place}: '{value.name}' was declared by another "
                        "capture; declare it in this one."
                    )
                slots[slot] = value.name
            elif held := next(_held_in(value), None):
                raise StateError(
                    f"{kernel.place}: '{held.name}' is a part of "
                    f"'{kernel.scalars[slot].name}', where replays can't change it: "
                    "only a parameter that is a number can be. Pass an ordinary number "
                    "there, or the whole in a tensor."
                )
        # A guard chooses the plan, which the capture has already.
        for slot, name in slots.items():
            if slot in kernel.guard_slots:
                raise StateError(
                    f"{kernel.place}: '{kernel.scalars[slot].name}' decides lengths or "
                    f"schedules, so replays can't change it as '{name}'. Pass an "
                    "ordinary number, and capture each value apart."
                )
            self._declared[name] = True
        return slots

    def _check_all_used(self) -> None:
        unused = [name for name, used in self._declared.items() if not used]
        if unused:
            raise ArgumentError(
                f"capture(): no call of the block was given the scalar '{unused[0]}', so "
                "to change it would have no effect. Pass it as it is: float(x) or "
                "np.float32(x) is an ordinary number."
            )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, which would lose the device."""
        raise not_copied("A capture", "Capture in each process")

    def __repr__(self) -> str:
        """Return the names of the scalars that replays may change."""
        state = "open" if self._is_open else "ready" if self.ended is None else "ended"
        return f"Capture({', '.join([state, *self._declared])})"


class ChangeableInt(int):
    """An integer declared by `Capture.scalar`, which replays may change."""

    name: str
    capture: Capture


class ChangeableFloat(float):
    """A float declared by `Capture.scalar`, which replays may change."""

    name: str
    capture: Capture


_CHANGEABLE: Final[Mapping[type, type[ChangeableInt | ChangeableFloat]]] = {
    int: ChangeableInt,
    float: ChangeableFloat,
}


def _held_in(value: object) -> Iterator[ChangeableInt | ChangeableFloat]:
    """Yield the declared scalars in a vector or a matrix; structs have copied theirs."""
    if isinstance(value, ChangeableInt | ChangeableFloat):
        yield value
    elif isinstance(value, tuple | list):
        for part in cast("Sequence[object]", value):
            yield from _held_in(part)


def _refuse(number: ChangeableInt | ChangeableFloat, *_: object) -> NoReturn:
    raise StateError(
        f"The result of arithmetic with '{number.name}' would be the same at each "
        "replay. Compute on the host what kernels need, and declare that by scalar()."
    )


for _kind in _CHANGEABLE.values():
    for _name in (*_BINARY, *_BITS):
        setattr(_kind, f"__{_name}__", _refuse)
        setattr(_kind, f"__r{_name}__", _refuse)
    for _name in (*_UNARY, *_NUMPY):
        setattr(_kind, f"__{_name}__", _refuse)


def changed(
    kernel: Kernel,
    dims: tuple[int, ...],
    scalars: tuple[Any, ...],
    slots: Mapping[int, str],
    changes: Mapping[str, float],
) -> tuple[Any, ...]:
    """Return the scalars of a call after a replay's `changes`, checked as in a call.

    `slots` has the position of each scalar that may change, with its name in `changes`.
    """
    if changes.keys().isdisjoint(slots.values()):
        return scalars
    given = (
        changes.get(slots[slot], value) if slot in slots else value
        for slot, value in enumerate(scalars)
    )
    fresh = prepare(kernel, tuple(given))
    check_scalars(kernel, dims, fresh)
    return fresh


def within_capture(what: str) -> StateError:
    """Return the error for something that a capture's block can't record."""
    return StateError(
        f"capture(): the block needs {what}, which can't be recorded and run again. Do "
        "that before the block or after it."
    )


def reloaded(kernel: str) -> StateError:
    """Return the error for a replay after one of its kernels was reloaded."""
    return StateError(
        f"replay(): '{kernel}' was reloaded after it was captured. Capture the calls again."
    )


def _as_count(times: object) -> int:
    try:
        count = operator.index(times)  # type: ignore[arg-type]  # it refuses what is none
    except TypeError:
        count = None
    if count is None or isinstance(times, bool):
        raise DtypeError(f"replay(): times is {kind_of(times)}; expected an integer.")
    if count < 0:
        raise ArgumentError(f"replay(): times is {count}; expected 0 or more.")
    return count
