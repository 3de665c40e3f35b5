"""Errors of writing the output, which users see."""

from __future__ import annotations

from typing import final


@final
class OutputError(Exception):
    """The output can't be written as asked; the message has why and what to do."""
