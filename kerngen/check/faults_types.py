"""What can be wrong with types and constants: codes KG03xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Related
from kerngen.source.text import Span
from kerngen.source.worded import Worded, WordedBeside, WordedNear


@final
@dataclass(frozen=True, kw_only=True)
class TypeMismatch(WordedNear):
    """A value of another type than its place asks for."""

    code: ClassVar[str] = "KG0301"
    rule: ClassVar[str] = "A value has the type that its place asks for."
    says: ClassVar[str] = "{place} is '{expected}', but this is '{actual}'."
    points: ClassVar[str] = "'{actual}'"
    nearby: ClassVar[str] = "'{expected}' because of this"
    advice: ClassVar[str] = "{remedy}"

    place: str
    expected: str
    actual: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class MixedTypes(Worded):
    """Two operands of different types."""

    code: ClassVar[str] = "KG0302"
    rule: ClassVar[str] = "f32, i32 and u32 never mix without a cast."
    says: ClassVar[str] = "'{what}' can't mix '{left}' and '{right}'."
    advice: ClassVar[str] = "{remedy}"

    what: str
    left: str
    right: str
    left_span: Span
    right_span: Span
    remedy: str

    @property
    def related(self) -> tuple[Related, ...]:
        """Both sides with their types."""
        return (
            Related(self.left_span, f"'{self.left}'"),
            Related(self.right_span, f"'{self.right}'"),
        )


@final
@dataclass(frozen=True, kw_only=True)
class OperandType(Worded):
    """An operand of a type that the operator does not work on."""

    code: ClassVar[str] = "KG0303"
    rule: ClassVar[str] = "An operator works on the types that it is defined for."
    says: ClassVar[str] = "'{operator}' works on {accepted}, but this is '{actual}'."
    points: ClassVar[str] = "'{actual}'"
    advice: ClassVar[str] = "{remedy}"

    operator: str
    accepted: str
    actual: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ConditionType(Worded):
    """A condition that is a number."""

    code: ClassVar[str] = "KG0304"
    rule: ClassVar[str] = "A condition is true or false."
    says: ClassVar[str] = "A condition is true or false, but this is '{actual}'."
    points: ClassVar[str] = "'{actual}'"
    advice: ClassVar[str] = "Compare it with something: '{text} != 0'."

    actual: str
    text: str


@final
@dataclass(frozen=True, kw_only=True)
class BuiltinArguments(Worded):
    """A built-in that has no form for these argument types."""

    code: ClassVar[str] = "KG0305"
    rule: ClassVar[str] = "A built-in is called with argument types that it has."
    says: ClassVar[str] = "'{function}' does not take ({actual})."
    points: ClassVar[str] = "it takes {accepted}"
    advice: ClassVar[str] = "{remedy}"

    function: str
    actual: str
    accepted: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class LiteralRange(Worded):
    """A constant that its type can't hold."""

    code: ClassVar[str] = "KG0306"
    rule: ClassVar[str] = "A constant fits its type."
    says: ClassVar[str] = "{value} does not fit '{type}', which holds {low} to {high}."
    advice: ClassVar[str] = "{instead}"

    value: str
    type: str
    low: str
    high: str
    remedy: str = ""

    @property
    def instead(self) -> str:
        """What may be meant, or what fits."""
        return self.remedy or "Write a value in that range."


@final
@dataclass(frozen=True, kw_only=True)
class NotConstant(WordedNear):
    """A default or constant that depends on something."""

    code: ClassVar[str] = "KG0307"
    rule: ClassVar[str] = "Constants and defaults are constant expressions."
    says: ClassVar[str] = "{place} must be constant, but '{name}' is not."
    nearby: ClassVar[str] = "'{name}' is declared here"
    advice: ClassVar[str] = "Use literals, constants, operators and built-ins."

    place: str
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class NotFinite(Worded):
    """A constant expression without a finite value."""

    code: ClassVar[str] = "KG0308"
    rule: ClassVar[str] = "A constant expression has a finite value."
    says: ClassVar[str] = "This constant expression has no finite value in '{type}'."
    advice: ClassVar[str] = (
        "It overflows, or an argument is outside of the function's domain."
    )

    type: str


@final
@dataclass(frozen=True, kw_only=True)
class LiteralVanishes(Worded):
    """A literal so near to 0 that an f32 can't tell them apart."""

    code: ClassVar[str] = "KG0316"
    rule: ClassVar[str] = "A literal other than 0 does not become 0."
    says: ClassVar[str] = (
        "{value} becomes 0 as an 'f32', whose smallest positive number is 1.4e-45."
    )
    advice: ClassVar[str] = (
        "Write '0.0', or a larger number; drivers may treat all below 1.2e-38 as 0."
    )

    value: str


@final
@dataclass(frozen=True, kw_only=True)
class DivisionByZero(Worded):
    """A divisor on the host that is 0 at every call."""

    code: ClassVar[str] = "KG0315"
    rule: ClassVar[str] = "The host does not divide by 0."
    says: ClassVar[str] = "'{operator}' divides by 0 on the host, at every call."
    points: ClassVar[str] = "always 0"
    advice: ClassVar[str] = "Write a divisor that is not 0."

    operator: str


@final
@dataclass(frozen=True, kw_only=True)
class ConstantArguments(Worded):
    """Constant arguments for which WGSL does not define the built-in."""

    code: ClassVar[str] = "KG0309"
    rule: ClassVar[str] = "A built-in is defined for its constant arguments."
    says: ClassVar[str] = "'{function}' is not defined for these constants: {reason}."

    advice: ClassVar[str] = "Change them, or make one of them a parameter."

    function: str
    reason: str


@final
@dataclass(frozen=True, kw_only=True)
class TypeNotAllowed(Worded):
    """A type that its place can't have."""

    code: ClassVar[str] = "KG0311"
    rule: ClassVar[str] = "Each place takes only certain types."
    says: ClassVar[str] = "{place} can't be '{type}'."
    advice: ClassVar[str] = "{remedy}"

    place: str
    type: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class VectorDefault(Worded):
    """A default of a vector that is no such vector."""

    code: ClassVar[str] = "KG0312"
    rule: ClassVar[str] = "A vector's default is written like a call of its type."
    says: ClassVar[str] = "The default of '{type}' gives all its components."
    advice: ClassVar[str] = "Write '{example}'."

    type: str
    example: str


@final
@dataclass(frozen=True, kw_only=True)
class CastToBool(Worded):
    """A cast to bool."""

    code: ClassVar[str] = "KG0313"
    rule: ClassVar[str] = "Casts are to f32, i32 and u32."
    says: ClassVar[str] = "There is no cast to 'bool'."
    advice: ClassVar[str] = "Compare instead: '{text} != 0'."

    text: str


@final
@dataclass(frozen=True, kw_only=True)
class ArgumentType(WordedBeside):
    """An argument of another type than the function's parameter."""

    code: ClassVar[str] = "KG0314"
    rule: ClassVar[str] = "An argument has the type of its parameter."
    says: ClassVar[str] = (
        "'{parameter}' of '{function}' is '{expected}', but this is '{actual}'."
    )
    points: ClassVar[str] = "'{actual}'"
    beside: ClassVar[str] = "declared here"
    advice: ClassVar[str] = "{remedy}"

    function: str
    parameter: str
    expected: str
    actual: str
    remedy: str
