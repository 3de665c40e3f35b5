"""What a row of the table of built-in functions says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of


@final
@dataclass(frozen=True, slots=True)
class Accuracy:
    """A bound on the f32 error of a built-in, by WGSL's accuracy rules.

    The bound is `absolute + (ulps + ulps_per_argument * |x|) * ulp(result)`, x being the
    first argument.  `source` says where it comes from ("WGSL 15.7.4.1", say).
    """

    ulps: float = 0.0
    absolute: float = 0.0
    ulps_per_argument: float = 0.0
    source: str = "exact"


@final
@dataclass(frozen=True, slots=True)
class Overload:
    """One typing of a built-in."""

    parameters: tuple[Scalar, ...]
    result: Scalar


@final
@dataclass(frozen=True, slots=True)
class Builtin:
    """One built-in function.

    `wgsl` is a format template over the arguments `{0}`, `{1}`, ... and the types `{T}`
    (f32 or vec4f, the width at hand); it may call a function of
    `kerngen.shader.helpers`, which the printer then adds.  `numpy` is a template over
    the arguments alone; it may use `np` and `ref` (`kerngen.runtime.reference`).
    A built-in that is not `wide` has no vector form: WGSL wants some argument scalar.
    """

    name: str
    overloads: tuple[Overload, ...]
    wgsl: str
    numpy: str
    accuracy: Accuracy
    doc: str
    wide: bool = True

    def result(self, given: tuple[ValueType, ...]) -> ValueType | None:
        """Return the type for arguments of these types; None if there is no such form.

        Of vectors of one width, each component is computed from those beside it; what
        is true or false holds for all of them.
        """
        scalars = tuple(map(scalar_of, given))
        found = next((o for o in self.overloads if o.parameters == scalars), None)
        if found is None or any(isinstance(type_, Matrix) for type_ in given):
            return None
        pairs = zip(given, found.parameters, strict=True)
        chosen = [type_ for type_, scalar in pairs if scalar is not Scalar.BOOL]
        widths = {type_.width if isinstance(type_, Vector) else 1 for type_ in chosen}
        if len(widths) > 1 or (found.result is Scalar.BOOL and widths - {1}):
            return None
        width = widths.pop() if widths else 1
        return found.result if width == 1 else Vector(found.result, width)

    @property
    def arity(self) -> int:
        """The number of arguments; all overloads take as many."""
        return len(self.overloads[0].parameters)
