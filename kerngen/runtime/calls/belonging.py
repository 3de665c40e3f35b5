"""The error for a tensor that belongs to another context."""

from __future__ import annotations

from kerngen.runtime.errors import ContextError


def of_another_context(what: str, theirs: object, ours: object) -> ContextError:
    """Return the error for a tensor that belongs to another context than `ours`.

    The message distinguishes the contexts in words, as two on one adapter look alike.
    """
    given, expected = repr(theirs), repr(ours)
    if given == expected:
        given = f"another {given}"
        expected = "that of this call: each open() makes a context of its own"
    return ContextError(
        f"{what} belongs to {given}; expected {expected}. "
        f"Read it there and upload it here."
    )
