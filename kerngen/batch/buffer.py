"""Buffers of a batch: handles for the user, values for the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final
from weakref import ref

from kerngen.runtime import StateError, Tensor, f32
from kerngen.runtime.values.shapes import Shape

if TYPE_CHECKING:
    from kerngen.batch.batch import Batch

Floats: TypeAlias = "Tensor[f32, Any]"
"""A tensor of float32, of any rank."""


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class BatchBuffer:
    """A handle for float32 elements that a batch has, or will compute.

    It keeps them alive: without a handle, their memory is used again once no queued
    operation reads them.
    """

    batch: Batch = field(repr=False)
    """The batch that it belongs to; no other takes it."""
    shape: Shape


@final
class BufferValue:
    """The result behind a handle: a shape, and a tensor once it is computed.

    The queue refers to values, and a value to its handle only weakly: so `is_held` is
    false once the user has dropped the handle, and the result need not be kept.
    """

    __slots__ = ("_handle", "_losses", "shape", "tensor")

    def __init__(self, handle: BatchBuffer, tensor: Floats | None = None) -> None:
        """Make the value of a handle; an imported one has its tensor already."""
        self.shape = handle.shape
        self.tensor = tensor
        self._handle = ref(handle)
        self._losses = 0 if tensor is None else tensor.losses

    @property
    def is_held(self) -> bool:
        """Whether the user still has the handle."""
        return self._handle() is not None

    @property
    def is_lost(self) -> bool:
        """Whether an error lost the recording that computes it."""
        return self.tensor is not None and self.tensor.losses != self._losses

    def settle(self, tensor: Floats, losses: int) -> None:
        """Set the tensor, once the call that computes it is recorded.

        `losses` is how often the tensor's contents were lost by then: once that number is
        higher, this value is lost, too.
        """
        self.tensor = tensor
        self._losses = losses

    def check(self, who: str) -> None:
        """Refuse a value that was lost; `who` is the operation that needs it.

        Raises:
            StateError: If it was lost.
        """
        if self.is_lost:
            raise StateError(
                f"{who}, of shape {self.shape}, was never computed: an error ended the "
                "ctx.batch() in which execute() was called. Queue the operations "
                "again, on a new batch."
            )
