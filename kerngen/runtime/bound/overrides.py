"""What all entry points have in common: their shader, and the constants they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from kerngen.runtime.bound.shader import Shader
from kerngen.runtime.device.gpu import GPUDevice
from kerngen.runtime.errors import DtypeError
from kerngen.runtime.struct import fit_of
from kerngen.runtime.values.conversion import Misfit
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.kinds import kind_of


@final
@dataclass(frozen=True, slots=True)
class Override:
    """A constant that a pipeline chooses; WebGPU knows it as `key`.

    One without an element type is a bool.
    """

    name: str
    key: str
    element: type[Element] | None

    def checked(self, value: object, where: str) -> object:
        """Return a value as it is kept; None leaves it to the shader."""
        if value is None:
            return None
        if self.element is None:
            if not isinstance(value, bool):
                raise DtypeError(f"'{where}' is {kind_of(value)}; expected a bool.")
            return value
        try:
            return fit_of(self.element)(value)
        except Misfit as misfit:
            raise misfit.error(where) from None


class Programmable:
    """The base of generated entry points: their overrides are fields."""

    __slots__ = ()

    SHADER: ClassVar[Shader]
    ENTRY: ClassVar[str] = "main"
    OVERRIDES: ClassVar[tuple[Override, ...]] = ()

    def __post_init__(self) -> None:
        """Check the overrides."""
        for override in self.OVERRIDES:
            value = getattr(self, override.name)
            kept = override.checked(value, f"{type(self).__name__}.{override.name}")
            if kept is not value:
                object.__setattr__(self, override.name, kept)

    @property
    def constants(self) -> dict[str, float]:
        """The overrides that were chosen, by the names that WebGPU has for them."""
        chosen = ((each.key, getattr(self, each.name)) for each in self.OVERRIDES)
        return {key: value for key, value in chosen if value is not None}

    def programmed(self, device: GPUDevice) -> dict[str, Any]:
        """Return what a pipeline of wgpu takes of a stage."""
        return {
            "module": self.SHADER.module(device),
            "entry_point": self.ENTRY,
            "constants": self.constants,
        }
