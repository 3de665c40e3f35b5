"""Diagnostics of gradient and derivative items: codes KG12xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class NoKernelToDerive(Diagnostic, code="KG1201"):
    MESSAGE = "There is no kernel '{text}' to derive."
    HELP = (
        "Did you mean '{suggestion}'?",
        "Declare it in this file, or add 'use' for the file that has it.",
    )
    suggestion: str


class DerivedFromItself(Diagnostic, code="KG1202"):
    MESSAGE = "'{text}' is derived from itself: {chain}."
    HELP = "Name the kernel that has the equations."
    chain: str


class UnknownDerivative(Diagnostic, code="KG1220"):
    MESSAGE = "There is no function '{text}' in this file to derive."
    HELP = (
        "Did you mean '{suggestion}'?",
        "Put it beside the function, in the same file.",
    )
    suggestion: str


class DerivedTwice(Diagnostic, code="KG1221"):
    MESSAGE = "'{text}' has a derivative already."
    HELP = "Keep one of them."
    other: Span = related("the first one")


class DerivativeParameters(Diagnostic, code="KG1222"):
    MESSAGE = (
        "The derivative of '{text}' takes ({actual}), and the function ({expected})."
    )
    HELP = "Write 'derivative of {text}({expected})'."
    other: Span = related("the function")
    actual: str
    expected: str


class DerivativeValues(Diagnostic, code="KG1223"):
    MESSAGE = "'{name}' has {expected:derivative} by f32, and this is {actual:value}."
    HELP = "Write a value for each of them, in their order: {wanted}."
    name: str
    expected: int
    actual: int
    wanted: str


class DerivativeOfVectors(Diagnostic, code="KG1224"):
    MESSAGE = "Derivatives are by f32 and of f32, and '{text}' has the type '{type}'."
    HELP = "Leave the derivative out: it is derived from the equations of the function."
    type: str
