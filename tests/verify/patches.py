"""What takes the place of functions in tests."""

from __future__ import annotations

from collections.abc import Callable


def nothing(*_: object) -> None:
    """Do and return nothing."""


def always(result: object) -> Callable[..., object]:
    """What returns this, whatever it is given."""

    def returned(*_: object) -> object:
        return result

    return returned
