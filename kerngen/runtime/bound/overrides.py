"""The base class of generated entry points: their shader, and its overrides."""

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
    """An override constant of a shader; `key` identifies it in WebGPU: its name or its number.

    `element` is its type, None for a bool.
    """

    name: str
    key: str
    element: type[Element] | None

    def checked(self, value: object, where: str) -> object:
        """Return a value in its stored form, or raise; None keeps the shader's own default.

        `where` names the value in the error.
        """
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
        """The overrides that were set, by their WebGPU names."""
        chosen = ((each.key, getattr(self, each.name)) for each in self.OVERRIDES)
        return {key: value for key, value in chosen if value is not None}

    def programmed(self, device: GPUDevice) -> dict[str, Any]:
        """Return a stage for wgpu's `create_*_pipeline`: module, entry point and constants."""
        return {
            "module": self.SHADER.module(device),
            "entry_point": self.ENTRY,
            "constants": self.constants,
        }
