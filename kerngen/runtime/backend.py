"""The interface of a backend: memory, copies, launches and submission."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kerngen.runtime.bound.pipeline import Dispatch, Size
    from kerngen.runtime.caches import Counted
    from kerngen.runtime.calls.capture import Capture
    from kerngen.runtime.calls.choices import Choice
    from kerngen.runtime.calls.kernel import Dims, Kernel
    from kerngen.runtime.context import Context
    from kerngen.runtime.counters import Counters
    from kerngen.runtime.device.gpu import GPUBuffer, GPUDevice
    from kerngen.runtime.device.limits import Limits
    from kerngen.runtime.device.storage import Lease
    from kerngen.runtime.device.timing import Span
    from kerngen.runtime.profile import Profile
    from kerngen.runtime.tensor import Tensor

Kind: TypeAlias = Literal["gpu", "software", "reference"]
"""A GPU, a CPU that does a GPU's work, or NumPy."""
Bytes: TypeAlias = NDArray[np.uint8]
AnyTensor: TypeAlias = "Tensor[Any, Any]"
Range: TypeAlias = "tuple[Lease[Any], int, int]"
"""A range to read: a lease, the offset in it, and the number of bytes."""


class Download(Protocol):
    """A copy from the device that is under way: call either `finish` or `abandon`, once."""

    def finish(self) -> Bytes:
        """Wait for the copy, and return its bytes."""
        ...

    def abandon(self) -> None:
        """Stop waiting for the copy, and free its memory."""
        ...


class Backend(Protocol):
    """The interface of a backend: a device, or NumPy in its place.

    Every method may be called from any thread and takes the context's lock itself.
    """

    @property
    def kind(self) -> Kind:
        """Whether a GPU, a software adapter or NumPy does the work."""
        ...

    @property
    def adapter_name(self) -> str:
        """The adapter, in its driver's words."""
        ...

    @property
    def device(self) -> GPUDevice:
        """The device; raises ContextError where there is none."""
        ...

    @property
    def alignment(self) -> int:
        """The alignment in bytes of a binding's offset; other tensors are copied first."""
        ...

    @property
    def max_tensor_bytes(self) -> int:
        """The size in bytes of the largest tensor that a kernel can be given."""
        ...

    @property
    def unchecked(self) -> bool:
        """Whether shaders run without runtime checks, such as those of bounds."""
        ...

    @property
    def counters(self) -> Counters:
        """Counts of what the backend has done so far."""
        ...

    @property
    def limits(self) -> Limits:
        """The limits that users may set."""
        ...

    @property
    def caches(self) -> Mapping[str, Counted]:
        """The caches and pools by name."""
        ...

    def lease(self, nbytes: int, least: int = 0) -> Lease[Any]:
        """Return storage for `nbytes` bytes, padded, with undefined contents.

        It has room for `least` bytes at least: an empty tensor is bound as one element.
        """
        ...

    def wrap(self, buffer: GPUBuffer, offset: int, nbytes: int) -> Lease[Any]:
        """Return a lease of the caller's own buffer, for `nbytes` bytes from `offset` on."""
        ...

    def hand_out(self, lease: Lease[Any]) -> GPUBuffer:
        """Return the buffer of a lease, which the caller uses as well from now on."""
        ...

    def clear(self, lease: Lease[Any], offset: int, nbytes: int) -> None:
        """Fill `nbytes` bytes of a lease, from `offset` on, with zeros."""
        ...

    def upload(self, lease: Lease[Any], offset: int, data: Bytes) -> None:
        """Store the bytes `data` in a lease, from byte `offset` on."""
        ...

    def download(
        self, ranges: Sequence[Range], into: Sequence[Bytes] = ()
    ) -> list[Bytes]:
        """Wait once, and return copies of the ranges: in the arrays `into`, or in new ones."""
        ...

    async def download_async(self, ranges: Sequence[Range]) -> list[Bytes]:
        """Return copies of the ranges, without blocking the event loop."""
        ...

    def begin_download(self, wanted: Range) -> Download:
        """Submit what is recorded, begin to copy a range, and return without waiting."""
        ...

    def copy(self, source: AnyTensor, target: AnyTensor) -> None:
        """Copy the elements of a tensor to another of the same size."""
        ...

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> tuple[AnyTensor, ...]:
        """Check the arguments, record the kernel and return its outputs."""
        ...

    def dispatch(self, call: Dispatch, grid: Size) -> None:
        """Record `grid` workgroups of a pipeline that `kerngen bind` generated."""
        ...

    def choices(self, kernel: Kernel, dims: Dims) -> tuple[Choice, ...]:
        """Return the schedules that a launch would run; `dims` has the derived dims as well."""
        ...

    def submit(self) -> None:
        """Submit what is recorded."""
        ...

    def batch(self) -> AbstractContextManager[None]:
        """Hold back submission until the end of a block."""
        ...

    def timed(self) -> AbstractContextManager[Span]:
        """Time what a block records, as one compute pass between two timestamps."""
        ...

    @property
    def is_capturing(self) -> bool:
        """Whether the block of a `capture()` is open."""
        ...

    def capture(self) -> AbstractContextManager[Capture]:
        """Record the calls of the caller's block without running them, to be replayed later."""
        ...

    def profile(self) -> AbstractContextManager[Profile]:
        """Time each dispatch of a block by itself."""
        ...

    def trim(self) -> None:
        """Free the memory that no tensor uses."""
        ...

    def close(self) -> None:
        """Free everything; later calls raise ContextError."""
        ...
