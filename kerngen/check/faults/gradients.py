"""What can be wrong with gradients and derivatives, where they are declared: KG12xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class NoKernelToDerive(
    Diagnostic,
    code="KG1201",
    message="There is no kernel '{name}' to derive.",
    help=(
        "Did you mean '{suggestion}'?",
        "Declare it in this file, or add 'use' for the file that has it.",
    ),
):
    name: str
    suggestion: str


class DerivedFromItself(
    Diagnostic,
    code="KG1202",
    message="'{name}' is derived from itself: {chain}.",
    help="Name the kernel that has the equations.",
):
    name: str
    chain: str


class UnknownDerivative(
    Diagnostic,
    code="KG1220",
    message="There is no function '{name}' in this file to derive.",
    help=(
        "Did you mean '{suggestion}'?",
        "Put it beside the function, in the same file.",
    ),
):
    name: str
    suggestion: str


class DerivedTwice(
    Diagnostic,
    code="KG1221",
    message="'{name}' has a derivative already.",
    help="Keep one of them.",
    related={"other": "the first one"},
):
    other: Span
    name: str


class DerivativeParameters(
    Diagnostic,
    code="KG1222",
    message=(
        "The derivative of '{name}' takes ({actual}), and the function ({expected})."
    ),
    help="Write 'derivative of {name}({expected})'.",
    related={"other": "the function"},
):
    other: Span
    name: str
    actual: str
    expected: str


class DerivativeValues(
    Diagnostic,
    code="KG1223",
    message="'{name}' has {expected} by f32, and this is {actual}.",
    help="Write a value for each of them, in their order: {wanted}.",
):
    name: str
    expected: str
    actual: str
    wanted: str


class DerivativeOfVectors(
    Diagnostic,
    code="KG1224",
    message="Derivatives are by f32 and of f32, and '{name}' has the type '{type}'.",
    help="Leave the derivative out: it is derived from the equations of the function.",
):
    name: str
    type: str
