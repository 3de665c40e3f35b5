"""Calls with wrong arguments: errors that show how the function is called.

Python's own message, "takes 2 positional arguments but 3 were given", does not help a beginner:
numbers of a kernel are given by name, and shapes are tuples.  Instead:

    axpy: numbers and structs are given by name: alpha=2.0. Call it as axpy(x, y, alpha=...).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar, cast

from kerngen.runtime.errors import DtypeError
from kerngen.runtime.values.elements import Element

F = TypeVar("F", bound=Callable[..., Any])
Explain: TypeAlias = Callable[
    [Callable[..., Any], Sequence[object], Mapping[str, object]], DtypeError
]
"""Makes the error of a wrong call, from the function and its arguments."""


def explained(explain: Explain) -> Callable[[F], F]:
    """Return a decorator that replaces a call's TypeError by the error `explain` makes.

    The decorator adds about 0.1 us to a call.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                # The traceback of a wrong call ends here; one with another frame below is of
                # an error within the function.
                if error.__traceback__ is None or error.__traceback__.tb_next:
                    raise
                wrong = explain(function, args, kwargs)
            raise wrong

        return cast("F", call)

    return decorate


def _wrong_call(
    function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> DtypeError:
    """Return the error of a call of a kernel's function, or of its reference."""
    parameters = inspect.signature(function).parameters
    required = [n for n, each in parameters.items() if each.default is each.empty]
    placed = [n for n, each in parameters.items() if each.kind is not each.KEYWORD_ONLY]
    named = [name for name in parameters if name not in placed]
    in_order = placed[: len(args)]
    if unknown := [name for name in kwargs if name not in parameters]:
        close = get_close_matches(unknown[0], parameters, n=1)
        meant = f"; did you mean '{close[0]}'?" if close else "."
        fault = f"there is no argument '{unknown[0]}'{meant}"
    elif rest := args[len(placed) :]:
        free = [name for name in named if name not in kwargs]
        fault = _too_many(rest, free, len(placed))
    elif twice := [name for name in kwargs if name in in_order]:
        fault = f"'{twice[0]}' is given in order and by name."
    else:
        missing = [f"'{n}'" for n in required if n not in {*in_order, *kwargs}]
        fault = f"no {' and no '.join(missing)} is given."
    by_name = [f"{n}=..." for n in named if n in required or f"{n}=" in fault]
    form = f"{function.__name__}({', '.join((*placed, *by_name))})"
    return DtypeError(f"{function.__name__}: {fault} Call it as {form}.")


kernel_function: Final = explained(_wrong_call)
"""The decorator of generated functions: the error of a wrong call shows the right one."""

_NO_NUMBERS: Final = ("out", "ctx")
"""The keyword arguments of generated functions that are not the kernel's own numbers."""


def _too_many(rest: Sequence[object], free: Sequence[str], placed: int) -> str:
    """Return the message for too many positional arguments; `rest` are those.

    They are reported with the names that they were probably meant for.
    """
    numbers = [name for name in free if name not in _NO_NUMBERS]
    if len(rest) <= len(numbers) and all(map(_is_value, rest)):
        pairs = zip(numbers, rest, strict=False)
        given = ", ".join(f"{name}={_shortened(value)}" for name, value in pairs)
        return f"numbers and structs are given by name: {given}."
    if len(rest) == 1 and "out" in free and not _is_value(rest[0]):
        return "the tensor to write is given by name: out=..."
    many = "1 argument" if placed == 1 else f"{placed} arguments"
    return f"it takes {many} in order, got {placed + len(rest)}."


def _is_value(value: object) -> bool:
    """Whether a value may be a scalar argument; those of an array or tensor are not."""
    return not getattr(value, "shape", ())


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else "..."


_LONGEST: Final = 40
"""The longest text of a value that a message repeats."""


def wrong_shape(
    function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> DtypeError:
    """Return the error of a call like `ctx.zeros(3, 4, f32)`: a shape must be one argument."""
    values = [*args[1:], *kwargs.values()]
    lengths = [value for value in values if isinstance(value, int)]
    shapes: list[Any] = [v for v in values if isinstance(v, tuple | list)]
    shape: Sequence[object] = tuple(lengths) if lengths else ("m", "n")
    if shapes:
        shape = cast("Sequence[object]", shapes[0])
    elements = [value.__name__ for value in values if _is_element(value)]
    given = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    return DtypeError(
        f"ctx.{function.__name__} takes a shape and an element type: write "
        f"ctx.{function.__name__}({given}, {elements[0] if elements else 'f32'})."
    )


def wrong_upload(
    function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> DtypeError:
    """Return the error of a call like `ctx.vector([1, 2])`, without an element type."""
    values = [*args[1:], *kwargs.values()]
    elements = [value.__name__ for value in values if _is_element(value)]
    name = function.__name__
    what = "value" if name == "scalar" else "array"
    return DtypeError(
        f"ctx.{name} takes one {what} and an element type: write "
        f"ctx.{name}({what}, {elements[0] if elements else 'f32'})."
    )


def _is_element(value: object) -> TypeGuard[type[Element]]:
    return isinstance(value, type) and issubclass(value, Element)
