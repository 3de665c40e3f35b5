"""What the language has and kerngen can't do yet: codes KG09xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.worded import Worded


@final
@dataclass(frozen=True, kw_only=True)
class MatrixUnsupported(Worded):
    """A matrix type such as `mat4x4f`."""

    code: ClassVar[str] = "KG0904"
    rule: ClassVar[str] = "Parameters are scalars, vectors or tensors, for now."
    says: ClassVar[str] = "The matrix type '{type}' is not supported yet."
    advice: ClassVar[str] = "Pass it as a tensor: 'f32[{columns}, {rows}]'."

    type: str
    columns: str
    rows: str


@final
@dataclass(frozen=True, kw_only=True)
class SwizzleUnsupported(Worded):
    """Several components of a vector at once: `v.xy`."""

    code: ClassVar[str] = "KG0905"
    rule: ClassVar[str] = "A vector is read one component at a time, for now."
    says: ClassVar[str] = "Swizzles such as '.{member}' are not supported yet."
    advice: ClassVar[str] = "Read one component at a time: '{base}.{first}'."

    base: str
    member: str

    @property
    def first(self) -> str:
        """The first component named."""
        return self.member[:1]


@final
@dataclass(frozen=True, kw_only=True)
class MemberTargetUnsupported(Worded):
    """`p[i].pos = ...`."""

    code: ClassVar[str] = "KG0908"
    rule: ClassVar[str] = "Statements write whole elements, for now."
    says: ClassVar[str] = "Writing to a member is not supported yet."
    advice: ClassVar[str] = "Write the element '{target}' itself."

    target: str


@final
@dataclass(frozen=True, kw_only=True)
class VectorElementsUnsupported(Worded):
    """`x: vec3f[n]`."""

    code: ClassVar[str] = "KG0915"
    rule: ClassVar[str] = "The elements of a tensor are scalars, for now."
    says: ClassVar[str] = "Tensors of '{type}' are not supported yet."
    advice: ClassVar[str] = "Add an axis: '{scalar}[..., {width}]'."

    type: str
    scalar: str
    width: int


@final
@dataclass(frozen=True, kw_only=True)
class VectorValueUnsupported(Worded):
    """`vec2f(x, y)` in an expression."""

    code: ClassVar[str] = "KG0916"
    rule: ClassVar[str] = "Expressions are scalar, for now."
    says: ClassVar[str] = "Making a '{type}' in an expression is not supported yet."
    advice: ClassVar[str] = "Compute each component by itself."

    type: str
