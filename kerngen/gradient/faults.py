"""Why a kernel has no gradient such as is asked for: codes KG1203 to KG1212."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class ByUnknown(
    Diagnostic,
    code="KG1203",
    message="'{kernel}' has no parameter '{name}'.",
    help="{remedy}",
):
    kernel: str
    name: str
    remedy: str


class ByType(
    Diagnostic,
    code="KG1204",
    message="Gradients are by f32; '{name}' is {type}.",
    help="Leave '{name}' out.",
):
    name: str
    type: str


class NamedTwice(
    Diagnostic,
    code="KG1205",
    message="'{name}' is listed twice after '{word}'.",
    help="Keep one of them.",
    related={"other": "first here"},
):
    other: Span
    name: str
    word: str


class GivenUnknown(
    Diagnostic,
    code="KG1206",
    message="'{kernel}' computes no '{name}'.",
    help="{remedy}",
):
    kernel: str
    name: str
    remedy: str


class GivenUnneeded(
    Diagnostic,
    code="KG1207",
    message="The gradient does not need '{name}'.",
    help="Leave it out of 'given'.",
):
    name: str


class InPlace(
    Diagnostic,
    code="KG1208",
    message="'{kernel}' changes '{tensor}' in place.",
    help="Derive a kernel that returns the new values as an output.",
    related={"declared": "this is why"},
):
    declared: Span | None = None
    kernel: str
    tensor: str


class ZeroGradient(
    Diagnostic,
    code="KG1209",
    message="The gradient of '{kernel}' by '{name}' is 0 everywhere.",
    help=(
        "Leave '{name}' out: the outputs don't change with it, or in steps alone, as "
        "by comparisons, roundings and integers."
    ),
):
    kernel: str
    name: str


class NoDerivative(
    Diagnostic,
    code="KG1210",
    message="'{kernel}' has no gradient: there is no rule for {what}.",
    help="Write it by what has one, or as a function with a 'derivative of' its own.",
    related={"declared": "this is why"},
):
    declared: Span | None = None
    kernel: str
    what: str


class GradientTooLarge(
    Diagnostic,
    code="KG1211",
    message="The gradient of '{kernel}' has more than 64 statements.",
    help="Name values that are used several times by a 'let', or derive it in parts.",
    related={"declared": "this is why"},
):
    declared: Span | None = None
    kernel: str


class UnprovedClamp(
    Diagnostic,
    code="KG1212",
    severity="warning",
    message="'{text}' may be clamped: the gradient compares each element with each.",
    help="State what keeps it inside its axis, as in 'require 2 * r <= d;'.",
    related={"declared": "read here"},
):
    declared: Span | None = None
    text: str
