"""Tensors that share a buffer, and tensors that can't be bound at their offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

from kerngen.runtime.errors import AliasError
from kerngen.runtime.tensor import Tensor

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel

AnyTensor: TypeAlias = Tensor[Any, Any]


@final
@dataclass(frozen=True, slots=True)
class Detour:
    """An argument that is replaced by a copy during one call.

    `slot` is its number among the arguments.  If `copy_in`, the copy is filled before the call;
    if `copy_back`, its contents are copied to the argument after the call.
    """

    slot: int
    tensor: AnyTensor
    copy_in: bool
    copy_back: bool


def check_overlap(
    kernel: Kernel, slots: Sequence[AnyTensor | None], i: int, j: int
) -> None:
    """Raise AliasError if arguments `i` and `j`, one of them written, overlap in memory."""
    first, second = slots[i], slots[j]
    assert first is not None
    assert second is not None
    # The bytes that both have, from `start` up to `stop`.
    start = max(first.offset, second.offset)
    stop = min(first.offset + first.nbytes, second.offset + second.nbytes)
    if start >= stop:
        return
    one, other = kernel.tensors[i], kernel.tensors[j]
    written = other if one.access == "read" else one
    raise AliasError(
        f"{kernel.place}: '{one.name}' and '{other.name}' overlap in memory, and "
        f"'{written.name}' is written. Pass tensors that do not overlap."
    )


def find_detours(
    kernel: Kernel,
    slots: Sequence[AnyTensor | None],
    shared: Sequence[tuple[int, int]],
) -> list[Detour]:
    """Return the arguments that must be replaced by copies.

    They are those that the adapter can't bind at their offset, and one of each pair in
    `shared`: two arguments in one buffer of which a dispatch reads one and writes the other.
    Of such a pair the argument that is only read is chosen, if there is one, as it needs no
    copy back.
    """
    chosen = {
        number
        for number, tensor in enumerate(slots)
        if tensor is not None and not tensor.direct
    }
    if not chosen and not shared:
        return []
    for i, j in shared:
        if i not in chosen and j not in chosen:
            chosen.add(i if kernel.tensors[i].access == "read" else j)
    return [_detour(kernel, slots, number) for number in sorted(chosen)]


def _detour(kernel: Kernel, slots: Sequence[AnyTensor | None], slot: int) -> Detour:
    tensor = slots[slot]
    assert tensor is not None
    access = kernel.tensors[slot].access
    return Detour(slot, tensor, access != "write", access != "read")
