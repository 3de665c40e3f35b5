"""The error of everything that is wrong with a folder, a prompt or an option."""

from __future__ import annotations

from typing import final


@final
class ModelError(Exception):
    """A model that can't be loaded or asked; the message is one sentence for the user."""
