"""Bind groups: the generated dataclasses derive from one here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from kerngen.runtime.bound.bindings import Binding
from kerngen.runtime.context import Context
from kerngen.runtime.errors import ContextError
from kerngen.runtime.tensor import is_tensor


class BindGroup:
    """The base of generated bind groups: each field is a variable of the shader.

    What is given is checked when the group is made.
    """

    __slots__ = ()

    GROUP: ClassVar[int] = 0
    BINDINGS: ClassVar[tuple[Binding, ...]] = ()

    def __post_init__(self) -> None:
        """Check what is given for each binding."""
        for binding in self.BINDINGS:
            value = getattr(self, binding.name)
            where = f"{type(self).__name__}.{binding.name}"
            kept = binding.checked(value, where)
            if kept is not value:
                object.__setattr__(self, binding.name, kept)
        self.context()

    def items(self) -> Iterator[tuple[Binding, Any]]:
        """Yield each binding with its value."""
        for binding in self.BINDINGS:
            yield binding, getattr(self, binding.name)

    def context(self) -> Context | None:
        """Return the context of the tensors; None if there is no tensor."""
        found: Context | None = None
        for binding, value in self.items():
            if not is_tensor(value):
                continue
            if found is not None and value.ctx is not found:
                raise ContextError(
                    f"'{type(self).__name__}.{binding.name}' is a tensor of another "
                    f"context than those before it."
                )
            found = value.ctx
        return found
