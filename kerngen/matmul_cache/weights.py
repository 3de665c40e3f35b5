"""Weights on the device: upload and checks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, final

from numpy.typing import ArrayLike

from kerngen.matmul_cache.layouts import Layout
from kerngen.matmul_cache.split import F32_BYTES, split_weight
from kerngen.runtime import (
    ArgumentError,
    Context,
    DtypeError,
    Error,
    LimitError,
    Matrix,
    ShapeError,
    f32,
)
from kerngen.runtime.values.foreign import as_array

NamedError = TypeVar("NamedError", bound=Error)


@final
@dataclass(frozen=True, slots=True)
class Weight:
    """A weight with k inputs and n outputs, in parts of whole rows, in order."""

    k: int
    n: int
    layout: Layout
    parts: tuple[Matrix[f32], ...]

    @property
    def nbytes(self) -> int:
        """The size of its elements in bytes."""
        return self.k * self.n * F32_BYTES


@contextmanager
def naming(what: str) -> Generator[None, None, None]:
    """Put the name of the argument `what` in front of errors raised in a block."""
    try:
        yield
    except (DtypeError, LimitError, ShapeError) as error:
        raise named(error, what) from None


def named(error: NamedError, what: str) -> NamedError:
    """Return an error whose message begins with a name."""
    return type(error)(f"MatmulCache: {what}: {error}")


def check_string(name: object) -> str:
    """Return the name if it is a string; else raise ArgumentError."""
    if isinstance(name, str):
        return name
    raise ArgumentError(f"MatmulCache: a weight's name is a string, got {name!r}.")


def check_name(name: object) -> None:
    """Raise ArgumentError unless a name is a non-blank string."""
    if not check_string(name).strip():
        raise ArgumentError(f"MatmulCache: a weight's name is not blank, got {name!r}.")


def upload(ctx: Context, name: str, array: ArrayLike, layout: Layout) -> Weight:
    """Return a weight with the numbers of an array, converted to float32.

    Parts are converted one at a time, as they are uploaded.

    Raises:
        ShapeError: If the array is not of rank 2, or none because rows differ in length.
        DtypeError: If its elements are not numbers, or beyond float32's range.
        LimitError: If the adapter cannot bind a single row.
    """
    with naming(f"weight '{name}'"):
        source = as_array(array)
    if source.ndim != 2:
        raise ShapeError(
            f"MatmulCache: weight '{name}' has shape {source.shape} (rank "
            f"{source.ndim}); expected a matrix [{', '.join(layout)}]."
        )
    n, k = source.shape if layout == "nk" else source.shape[::-1]
    with naming(f"weight '{name}'"):
        ranges = split_weight(layout, k, n, ctx.max_tensor_bytes)
        parts = tuple(ctx.matrix(source[a:b], f32) for a, b in ranges)
    return Weight(k, n, layout, parts)
