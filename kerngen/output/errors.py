"""The exceptions of writing output, which users see."""

from __future__ import annotations

from typing import final


@final
class OutputError(Exception):
    """The output can't be written; the message has the reason and the way out."""
