"""The exceptions of the runtime: one tree, each with a text for its user.

A text names the kernel, the line of its source, the argument, what was expected and what
was given.  Classes that have a counterpart among Python's own exceptions derive from it
too.
"""

from __future__ import annotations

from typing import final


class Error(Exception):
    """The base of all exceptions that the runtime raises on purpose."""


@final
class ShapeError(Error, ValueError):
    """A rank or a length does not fit the kernel."""


@final
class DtypeError(Error, TypeError):
    """An argument has the wrong type or element type."""


@final
class AliasError(Error, ValueError):
    """A tensor that a kernel writes overlaps another of its arguments."""


@final
class ArgumentError(Error, ValueError):
    """An argument has a value that is not allowed."""


@final
class UnknownNameError(Error, KeyError):
    """There is no kernel, shader, scalar or other thing with this name."""

    def __str__(self) -> str:
        """Return the text as it is; KeyError would quote it."""
        return str(self.args[0])


@final
class LimitError(Error):
    """The adapter's limits do not allow the call."""


@final
class FeatureError(Error):
    """The device lacks a feature that the call needs."""


@final
class ContextError(Error):
    """Arguments are of different contexts, or a context is closed, or there is none at all."""


def not_copied(what: str, advice: str) -> Error:
    """Return the error for `copy` or `pickle` of an object that a device holds."""
    return DtypeError(
        f"{what} is on its device: it can't be pickled, nor copied by 'copy'. {advice}."
    )


@final
class StateError(Error, RuntimeError):
    """A call at the wrong time: before one it needs, or inside a block that forbids it."""


@final
class UniformRangeError(Error, ValueError):
    """A number does not fit the type of its scalar, field or element.

    It is also raised if the host can't compute a value.
    """


@final
class OutOfMemoryError(Error, MemoryError):
    """The adapter has no memory left for a buffer."""


@final
class DeviceLost(Error):
    """The device is gone: open a new context."""


@final
class NoAdapter(Error):
    """No adapter of the wanted kind was found."""


@final
class ValidationError(Error):
    """The adapter refused a shader or recorded work, in its own words."""


@final
class ReloadError(Error, ImportError):
    """A module that was generated again can't be loaded; the old one stays."""


@final
class AbiError(Error, ImportError):
    """A generated module and this runtime have different ABIs."""


@final
class MissingShadersError(Error, ImportError):
    """A generated module was installed, or copied, without the files of its shaders."""


@final
class CheckedShadersWarning(UserWarning):
    """Shaders keep their runtime checks, although `unchecked` asked for none."""


@final
class ReferenceFallbackWarning(UserWarning):
    """No adapter was found: kernels run as their NumPy reference, slowly."""
