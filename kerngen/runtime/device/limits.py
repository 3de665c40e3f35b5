"""The settable limits of a context: when it submits, and how much memory it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(slots=True)
class Limits:
    """The settable limits of a context.

    Recorded work is submitted after a few dispatches where the device is idle, then in pieces
    that grow; at the latest after `dispatches` dispatches, or when the temporaries and staging
    buffers of the work reach `temporary_bytes`.  A batch holds submission back.  The pool keeps
    at most `pooled_bytes` of free memory; if that is None, used and free memory together may
    exceed the most that was ever in use at once by a quarter and 1 GiB.
    """

    dispatches: int = 4096
    temporary_bytes: int = 256 << 20
    pooled_bytes: int | None = None
