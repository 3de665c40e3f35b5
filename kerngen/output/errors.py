"""What a user can get wrong about generated files."""

from __future__ import annotations

from typing import final


@final
class OutputError(Exception):
    """The output can't be written as asked; the message says why and what to do."""
