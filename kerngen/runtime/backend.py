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
    """A copy from the device that is under way; finish or abandon it, once."""

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
        """The alignment of bindings in bytes: a tensor at another offset is copied first."""
        ...

    @property
    def max_tensor_bytes(self) -> int:
        """The size of the largest tensor that a kernel can be given."""
        ...

    @property
    def unchecked(self) -> bool:
        """Whether shaders run without the checks of the adapter's library."""
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
        """Return padded storage for `nbytes`, with any contents.

        It has room for `least` bytes: an empty tensor is bound as one element.
        """
        ...

    def wrap(self, buffer: GPUBuffer, offset: int, nbytes: int) -> Lease[Any]:
        """Return a lease of a caller's buffer."""
        ...

    def hand_out(self, lease: Lease[Any]) -> GPUBuffer:
        """Return the buffer of a lease for the caller's own use."""
        ...

    def clear(self, lease: Lease[Any], offset: int, nbytes: int) -> None:
        """Fill a range of a lease with zeros."""
        ...

    def upload(self, lease: Lease[Any], offset: int, data: Bytes) -> None:
        """Write `data` at `offset` bytes of a lease."""
        ...

    def download(
        self, ranges: Sequence[Range], into: Sequence[Bytes] = ()
    ) -> list[Bytes]:
        """Return copies of ranges of leases, after one wait; in memory `into`, if given."""
        ...

    async def download_async(self, ranges: Sequence[Range]) -> list[Bytes]:
        """Return copies of ranges of leases, without blocking the event loop."""
        ...

    def begin_download(self, wanted: Range) -> Download:
        """Submit what is recorded, and begin to copy a range; does not wait."""
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
        """Record a dispatch of a pipeline that `kerngen bind` generated."""
        ...

    def choices(self, kernel: Kernel, dims: Dims) -> tuple[Choice, ...]:
        """Return which schedules a launch would run for dims, derived ones included."""
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
        """Whether a block is being captured."""
        ...

    def capture(self) -> AbstractContextManager[Capture]:
        """Record the calls of a block without running them, to be replayed later."""
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
