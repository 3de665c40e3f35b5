"""Why a kernel has no gradient such as is asked for: codes KG1203 to KG1212."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from kerngen.source.worded import Worded, WordedBeside, WordedNear


@final
@dataclass(frozen=True, kw_only=True)
class ByUnknown(Worded):
    """A gradient by what is no parameter."""

    code: ClassVar[str] = "KG1203"
    rule: ClassVar[str] = "A gradient is by parameters of the kernel."
    says: ClassVar[str] = "'{kernel}' has no parameter '{name}'."
    advice: ClassVar[str] = "{remedy}"

    kernel: str
    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ByType(Worded):
    """A gradient by integers."""

    code: ClassVar[str] = "KG1204"
    rule: ClassVar[str] = "Gradients are by numbers with a fraction."
    says: ClassVar[str] = "Gradients are by f32; '{name}' is {type}."
    advice: ClassVar[str] = "Leave '{name}' out."

    name: str
    type: str


@final
@dataclass(frozen=True, kw_only=True)
class NamedTwice(WordedBeside):
    """A name that is listed twice."""

    code: ClassVar[str] = "KG1205"
    rule: ClassVar[str] = "'by' and 'given' list a name once."
    says: ClassVar[str] = "'{name}' is listed twice after '{word}'."
    beside: ClassVar[str] = "first here"
    advice: ClassVar[str] = "Keep one of them."

    name: str
    word: str


@final
@dataclass(frozen=True, kw_only=True)
class GivenUnknown(Worded):
    """Something given that the kernel does not compute."""

    code: ClassVar[str] = "KG1206"
    rule: ClassVar[str] = "What is given is an output or a let of the kernel."
    says: ClassVar[str] = "'{kernel}' computes no '{name}'."
    advice: ClassVar[str] = "{remedy}"

    kernel: str
    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class GivenUnneeded(Worded):
    """Something given that the gradient does not read."""

    code: ClassVar[str] = "KG1207"
    rule: ClassVar[str] = "A gradient is given what it reads."
    says: ClassVar[str] = "The gradient does not need '{name}'."
    advice: ClassVar[str] = "Leave it out of 'given'."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class InPlace(WordedNear):
    """The gradient of a kernel that writes its parameters."""

    code: ClassVar[str] = "KG1208"
    rule: ClassVar[str] = "A gradient is of a kernel that has outputs alone."
    says: ClassVar[str] = "'{kernel}' changes '{tensor}' in place."
    nearby: ClassVar[str] = "this is why"
    advice: ClassVar[str] = "Derive a kernel that returns the new values as an output."

    kernel: str
    tensor: str


@final
@dataclass(frozen=True, kw_only=True)
class ZeroGradient(Worded):
    """A gradient that is 0 whatever the arguments are."""

    code: ClassVar[str] = "KG1209"
    rule: ClassVar[str] = "A gradient is not 0 everywhere."
    says: ClassVar[str] = "The gradient of '{kernel}' by '{name}' is 0 everywhere."
    advice: ClassVar[str] = (
        "Leave '{name}' out: the outputs don't change with it, or in steps alone, as by "
        "comparisons, roundings and integers."
    )

    kernel: str
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class NoDerivative(WordedNear):
    """The gradient of what has no rule."""

    code: ClassVar[str] = "KG1210"
    rule: ClassVar[str] = "Every part of an equation that is derived has a derivative."
    says: ClassVar[str] = "'{kernel}' has no gradient: there is no rule for {what}."
    nearby: ClassVar[str] = "this is why"
    advice: ClassVar[str] = (
        "Write it by what has one, or as a function with a 'derivative of' its own."
    )

    kernel: str
    what: str


@final
@dataclass(frozen=True, kw_only=True)
class GradientTooLarge(WordedNear):
    """A gradient that has too many statements."""

    code: ClassVar[str] = "KG1211"
    rule: ClassVar[str] = "A gradient has at most 64 statements."
    says: ClassVar[str] = "The gradient of '{kernel}' has more than 64 statements."
    nearby: ClassVar[str] = "this is why"
    advice: ClassVar[str] = (
        "Name values that are used several times by a 'let', or derive it in parts."
    )

    kernel: str


@final
@dataclass(frozen=True, kw_only=True)
class UnprovedClamp(WordedNear):
    """A read that may be clamped, as far as the compiler can prove."""

    code: ClassVar[str] = "KG1212"
    rule: ClassVar[str] = "Gradients are fast where no read has to be clamped."
    severity: ClassVar[Literal["error", "warning"]] = "warning"
    says: ClassVar[str] = (
        "'{text}' may be clamped: the gradient compares each element with each."
    )
    nearby: ClassVar[str] = "read here"
    advice: ClassVar[str] = (
        "State what keeps it inside its axis, as in 'require 2 * r <= d;'."
    )

    text: str
