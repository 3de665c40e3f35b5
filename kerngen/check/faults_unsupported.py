"""What the language has and kerngen can't do yet: codes KG09xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.check.worded import Worded


@final
@dataclass(frozen=True, kw_only=True)
class UseUnsupported(Worded):
    """`use "other.kern";`."""

    code: ClassVar[str] = "KG0901"
    rule: ClassVar[str] = "A file stands alone, for now."
    says: ClassVar[str] = "'use' is not supported yet."
    advice: ClassVar[str] = "Copy what you need of '{path}' into this file."

    path: str


@final
@dataclass(frozen=True, kw_only=True)
class StructUnsupported(Worded):
    """`struct P { ... }`."""

    code: ClassVar[str] = "KG0902"
    rule: ClassVar[str] = "There are no structs, for now."
    says: ClassVar[str] = "Structs are not supported yet."
    advice: ClassVar[str] = "Use one tensor or scalar per field."


@final
@dataclass(frozen=True, kw_only=True)
class F16Unsupported(Worded):
    """`f16`, in any form."""

    code: ClassVar[str] = "KG0903"
    rule: ClassVar[str] = "Elements are f32, i32 or u32, for now."
    says: ClassVar[str] = "The type '{type}' is not supported yet."
    advice: ClassVar[str] = "Use 'f32'."

    type: str


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
class RowsUnsupported(Worded):
    """The strategy `rows`."""

    code: ClassVar[str] = "KG0906"
    rule: ClassVar[str] = "There is no strategy 'rows', for now."
    says: ClassVar[str] = "The strategy 'rows' is not supported yet."
    advice: ClassVar[str] = "Use 'reduce', or leave the choice to kerngen."


@final
@dataclass(frozen=True, kw_only=True)
class StageScheduleUnsupported(Worded):
    """`schedule kernel.stage`."""

    code: ClassVar[str] = "KG0907"
    rule: ClassVar[str] = "A schedule is for a whole kernel, for now."
    says: ClassVar[str] = "Schedules of single stages are not supported yet."
    advice: ClassVar[str] = "Write 'schedule {kernel}': it applies where it fits."

    kernel: str


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
class GivenRangeUnsupported(Worded):
    """`sum[u < 2] ...`."""

    code: ClassVar[str] = "KG0909"
    rule: ClassVar[str] = "An index takes its range from an axis, for now."
    says: ClassVar[str] = "A range given for an index is not supported yet."
    advice: ClassVar[str] = (
        "Write '{name}' alone: it ranges over the first axis that it subscripts."
    )

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class ConstantSubscriptUnsupported(Worded):
    """`x[i, 0]`."""

    code: ClassVar[str] = "KG0910"
    rule: ClassVar[str] = "A subscript is an index, or is read from a tensor, for now."
    says: ClassVar[str] = "The constant subscript '{text}' is not supported yet."
    advice: ClassVar[str] = "Pass the slice as a tensor of its own."

    text: str


@final
@dataclass(frozen=True, kw_only=True)
class ScalarSubscriptUnsupported(Worded):
    """`x[i, k - 1]`, of dims and scalars alone."""

    code: ClassVar[str] = "KG0911"
    rule: ClassVar[str] = "A subscript is an index, or is read from a tensor, for now."
    says: ClassVar[str] = (
        "The subscript '{text}', computed from dims and scalars, is not supported yet."
    )
    advice: ClassVar[str] = "Pass the place in a tensor: 'x[at]' with 'at: u32[]'."

    text: str


@final
@dataclass(frozen=True, kw_only=True)
class AffineSubscriptUnsupported(Worded):
    """`x[2 * i + r]`."""

    code: ClassVar[str] = "KG0912"
    rule: ClassVar[str] = "A subscript is an index, or is read from a tensor, for now."
    says: ClassVar[str] = (
        "The subscript '{text}', affine in {names}, is not supported yet."
    )
    advice: ClassVar[str] = (
        "Subscript by a bare index, or read the subscript from a tensor: 'x[at[i]]'."
    )

    text: str
    names: str


@final
@dataclass(frozen=True, kw_only=True)
class ComputedSubscriptUnsupported(Worded):
    """`x[i / 2]`."""

    code: ClassVar[str] = "KG0913"
    rule: ClassVar[str] = "A subscript is an index, or is read from a tensor, for now."
    says: ClassVar[str] = "The computed subscript '{text}' is not supported yet."
    advice: ClassVar[str] = (
        "Subscript by a bare index, or read the subscript from a tensor: 'x[at[i]]'."
    )

    text: str


@final
@dataclass(frozen=True, kw_only=True)
class OutputDimUnsupported(Worded):
    """`-> y: f32[m / 2]`."""

    code: ClassVar[str] = "KG0914"
    rule: ClassVar[str] = "An output's axis is a dim of an input or a literal, for now."
    says: ClassVar[str] = "The computed output axis '{text}' is not supported yet."
    advice: ClassVar[str] = (
        "Name a dim of an input, or take the result as a 'mut' parameter."
    )

    text: str


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
