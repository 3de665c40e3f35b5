"""What can be wrong with gradients and derivatives, where they are declared: KG12xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.worded import Worded, WordedBeside


@final
@dataclass(frozen=True, kw_only=True)
class NoKernelToDerive(Worded):
    """The gradient of a kernel that neither the file has nor one that it uses."""

    code: ClassVar[str] = "KG1201"
    rule: ClassVar[str] = (
        "A gradient is of a kernel of its file, or of one that it uses."
    )
    says: ClassVar[str] = "There is no kernel '{name}' to derive."
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class DerivedFromItself(Worded):
    """A gradient that is of itself, by way of others or not."""

    code: ClassVar[str] = "KG1202"
    rule: ClassVar[str] = "No kernel is derived from itself."
    says: ClassVar[str] = "'{name}' is derived from itself: {chain}."
    advice: ClassVar[str] = "Name the kernel that has the equations."

    name: str
    chain: str


@final
@dataclass(frozen=True, kw_only=True)
class UnknownDerivative(Worded):
    """A derivative of a function that the file does not have."""

    code: ClassVar[str] = "KG1220"
    rule: ClassVar[str] = "A derivative is of a function of its file."
    says: ClassVar[str] = "There is no function '{name}' in this file to derive."
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class DerivedTwice(WordedBeside):
    """A second derivative of one function."""

    code: ClassVar[str] = "KG1221"
    rule: ClassVar[str] = "A function has one derivative."
    says: ClassVar[str] = "'{name}' has a derivative already."
    beside: ClassVar[str] = "the first one"
    advice: ClassVar[str] = "Keep one of them."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class DerivativeParameters(WordedBeside):
    """A derivative whose parameters are not those of its function."""

    code: ClassVar[str] = "KG1222"
    rule: ClassVar[str] = "A derivative has the parameters of its function."
    says: ClassVar[str] = (
        "The derivative of '{name}' takes ({actual}), and the function ({expected})."
    )
    beside: ClassVar[str] = "the function"
    advice: ClassVar[str] = "Write 'derivative of {name}({expected})'."

    name: str
    actual: str
    expected: str


@final
@dataclass(frozen=True, kw_only=True)
class DerivativeValues(Worded):
    """A derivative with too few or too many values."""

    code: ClassVar[str] = "KG1223"
    rule: ClassVar[str] = "A derivative has a value for each f32 parameter."
    says: ClassVar[str] = "'{name}' has {expected} by f32, and this is {actual}."
    advice: ClassVar[str] = "Write a value for each of them, in their order: {wanted}."

    name: str
    expected: str
    actual: str
    wanted: str


@final
@dataclass(frozen=True, kw_only=True)
class DerivativeOfVectors(Worded):
    """A derivative of a function that is not of numbers, or returns none."""

    code: ClassVar[str] = "KG1224"
    rule: ClassVar[str] = (
        "A derivative is of a function of numbers that returns an f32."
    )
    says: ClassVar[str] = (
        "Derivatives are by f32 and of f32, and '{name}' has the type '{type}'."
    )
    advice: ClassVar[str] = (
        "Leave the derivative out: it is derived from the equations of the function."
    )

    name: str
    type: str
