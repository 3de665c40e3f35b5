"""Diagnostics of gradients that can't be derived: codes KG1203 to KG1212."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

from kerngen.gradient.fault import Lacking
from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span

_FLAT: Final = (
    "the outputs don't change with '{name}', or in steps alone, as by comparisons, "
    "roundings and integers."
)

OtherNames: TypeAlias = Literal["one of several", "alone", "none"]
"""Whether others are named beside it, or could be, or no parameter has a gradient."""


class ByUnknown(Diagnostic, code="KG1203"):
    MESSAGE = "'{kernel}' has no parameter '{name}'."
    kernel: str
    name: str
    remedy: str


class ByType(Diagnostic, code="KG1204"):
    MESSAGE = "Gradients are by numbers of f32 or f16; '{name}' has none: it is {type}."
    HELP: ClassVar = {
        "one of several": "Leave '{name}' out.",
        "alone": "Name {others} instead.",
        "none": "Leave the gradient out: no parameter of the kernel has such numbers.",
    }
    case: OtherNames
    name: str
    others: str
    type: str


class NamedTwice(Diagnostic, code="KG1205"):
    MESSAGE = "'{name}' is listed twice after '{word}'."
    HELP = "Keep one of them."
    other: Span = related("first here")
    name: str
    word: str


class GivenUnknown(Diagnostic, code="KG1206"):
    MESSAGE = "'{kernel}' computes no '{name}'."
    kernel: str
    name: str
    remedy: str


class GivenUnneeded(Diagnostic, code="KG1207"):
    MESSAGE = "The gradient does not need '{name}'."
    HELP = "Leave it out of 'given'."
    name: str


class InPlace(Diagnostic, code="KG1208"):
    MESSAGE = "'{kernel}' changes '{tensor}' in place."
    HELP = "Derive a kernel that returns the new values as an output."
    declared: Span | None = related("this is why", default=None)
    kernel: str
    tensor: str


class ZeroGradient(Diagnostic, code="KG1209"):
    MESSAGE = "The gradient of '{kernel}' by '{name}' is 0 everywhere."
    HELP: ClassVar = {
        "one of several": f"Leave '{{name}}' out: {_FLAT}",
        "alone": f"Name {{others}} instead: {_FLAT}",
        "none": f"Leave the gradient out: {_FLAT}",
    }
    case: OtherNames
    kernel: str
    name: str
    others: str


class NoDerivative(Diagnostic, code="KG1210"):
    MESSAGE = "'{kernel}' has no gradient: {reason}."
    HELP: ClassVar = {
        "rule": "Write it by what has a derivative.",
        "parts": "Write it by one statement, and read a 'let' of the same value.",
        "prod": "Where all factors are positive, write 'exp(sum[j] log(x[j]))'.",
        "infinite": "Divide by what is not 0.",
    }
    declared: Span | None = related("this is why", default=None)
    case: Lacking
    kernel: str
    reason: str


class GradientTooLarge(Diagnostic, code="KG1211"):
    MESSAGE = "The gradient of '{kernel}' has more than 64 statements."
    HELP = "Name values that are used several times by a 'let', or derive it in parts."
    declared: Span | None = related("this is why", default=None)
    kernel: str


class UnprovedClamp(Diagnostic, code="KG1212"):
    SEVERITY = "warning"
    MESSAGE = "'{place}' may be clamped: the gradient compares each element with each."
    HELP = "State what keeps it inside its axis, as in 'require 2 * r <= d;'."
    declared: Span | None = related("read here", default=None)
    place: str
