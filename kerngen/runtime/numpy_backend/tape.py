"""A capture on the NumPy backend: its calls, which a replay runs again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast, final

from kerngen.runtime.backend import AnyTensor
from kerngen.runtime.calls.capture import Capture, changed
from kerngen.runtime.calls.checks import CheckedShapes

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel


@final
@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call whose arguments are checked, with a tensor for every output."""

    kernel: Kernel
    signature: CheckedShapes
    tensors: tuple[AnyTensor, ...]
    scalars: tuple[Any, ...]
    outputs: tuple[AnyTensor, ...]

    @property
    def written(self) -> tuple[AnyTensor, ...]:
        """The tensors that the call writes."""
        given = zip(self.kernel.inputs, self.tensors, strict=True)
        updated = [tensor for spec, tensor in given if spec.access == "update"]
        return (*updated, *self.outputs)


@final
@dataclass(frozen=True, slots=True)
class Captured:
    """A captured call; `names` has the position of each changeable scalar, with its name."""

    call: CheckedCall
    names: Mapping[int, str]

    def changed(self, changes: Mapping[str, float]) -> Captured:
        """Return the call with `changes` of its scalars applied, checked as in a call."""
        call = self.call
        dims = call.signature.values
        scalars = changed(call.kernel, dims, call.scalars, self.names, changes)
        return replace(self, call=replace(call, scalars=scalars))


Part: TypeAlias = Captured | Callable[[], None]
"""A call, or a copy or a fill with zeros."""


@final
class NumpyTape:
    """The recorded calls, copies and fills of a capture's block; needs the context's lock."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[None]],
        run: Callable[[CheckedCall], None],
    ) -> None:
        """Start empty; `opened` locks the context, `run` runs a call."""
        self.parts: list[Part] = []
        self.capture: Capture | None = None
        """The capture of the tape, while the block runs."""
        self._opened = opened
        self._run = run

    @property
    def kernels(self) -> Collection[Kernel]:
        """The kernels that the tape runs."""
        calls = [part.call for part in self.parts if isinstance(part, Captured)]
        return {call.kernel for call in calls}

    def add(self, call: CheckedCall, scalars: tuple[object, ...]) -> None:
        """Add a call; `scalars` are its scalar arguments as the caller gave them."""
        names = cast("Capture", self.capture).changeable(call.kernel, scalars)
        for tensor in call.written:
            tensor.lease.block.writes += 1
        self.parts.append(Captured(call, names))

    def replay(self, times: int, changes: Mapping[str, float]) -> None:
        """Run all recorded calls `times` times, or none if one of `changes` is invalid."""
        with self._opened():
            self.parts = [
                part.changed(changes) if isinstance(part, Captured) else part
                for part in self.parts
            ]
            for _ in range(times):
                for part in self.parts:
                    if isinstance(part, Captured):
                        self._run(part.call)
                    else:
                        part()

    def release(self) -> None:
        """Drop the calls, and with them their tensors."""
        self.parts.clear()
