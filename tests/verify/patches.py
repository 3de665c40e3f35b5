"""What takes the place of functions in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def nothing(*_: object) -> None:
    """Do and return nothing."""


def always(result: object) -> Callable[..., object]:
    """What returns this, whatever it is given."""

    def returned(*_: object) -> object:
        return result

    return returned


def raising(error: BaseException) -> Callable[..., Any]:
    """What raises this, whatever it is given."""

    def raised(*_: object) -> None:
        raise error

    return raised
