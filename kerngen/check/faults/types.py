"""Diagnostics of types and constants: codes KG03xx."""

from __future__ import annotations

from typing import Literal, TypeAlias

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class TypeMismatch(Diagnostic, code="KG0301"):
    MESSAGE = "{place} is '{expected}', but this is '{actual}'."
    LABEL = "'{actual}'"
    declared: Span | None = related("'{expected}' because of this", default=None)
    place: str
    expected: str
    actual: str
    remedy: str


class MixedTypes(Diagnostic, code="KG0302"):
    MESSAGE = "'{what}' can't mix '{left}' and '{right}'."
    what: str
    left: str
    right: str
    left_span: Span = related("'{left}'")
    right_span: Span = related("'{right}'")
    remedy: str


class OperandType(Diagnostic, code="KG0303"):
    MESSAGE = "'{operator}' works on {accepted}, but this is '{actual}'."
    LABEL = "'{actual}'"
    operator: str
    accepted: str
    actual: str
    remedy: str


class ConditionType(Diagnostic, code="KG0304"):
    MESSAGE = "A condition is true or false, but this is '{actual}'."
    LABEL = "'{actual}'"
    HELP = "Compare it with something: '{operand} != 0'."
    actual: str
    operand: str


class BuiltinArguments(Diagnostic, code="KG0305"):
    MESSAGE = "'{function}' does not take ({actual})."
    LABEL = "it takes {accepted}"
    function: str
    actual: str
    accepted: str
    remedy: str


class LiteralRange(Diagnostic, code="KG0306"):
    MESSAGE = "{value} does not fit '{type}', which holds {low} to {high}."
    HELP = "Write a value in that range."
    value: str
    type: str
    low: str
    high: str
    remedy: str = ""


class NotConstant(Diagnostic, code="KG0307"):
    MESSAGE = "{place} must be constant, but '{name}' is not."
    HELP = "Use literals, constants, operators and built-ins."
    declared: Span | None = related("'{name}' is declared here", default=None)
    place: str
    name: str


class NotFinite(Diagnostic, code="KG0308"):
    MESSAGE = "This constant expression has no finite value in '{type}'."
    HELP = "It overflows, or an argument is outside of the function's domain."
    type: str


class LiteralVanishes(Diagnostic, code="KG0316"):
    MESSAGE = (
        "{value} becomes 0 as an 'f32', whose smallest positive number is 1.4e-45."
    )
    HELP = "Write '0.0', or a larger number; drivers may treat all below 1.2e-38 as 0."
    value: str


class DivisionByZero(Diagnostic, code="KG0315"):
    MESSAGE = "'{operator}' divides by 0 on the host, at every call."
    LABEL = "always 0"
    HELP = "Write a divisor that is not 0."
    operator: str


class ConstantArguments(Diagnostic, code="KG0309"):
    MESSAGE = "'{function}' is not defined for these constants: {reason}."
    HELP = "Change them, or make one of them a parameter."
    function: str
    reason: str


NotAllowed: TypeAlias = Literal[
    "bool",
    "bool field",
    "bools",
    "half",
    "narrow",
    "cast",
    "constant",
    "constants",
    "struct",
    "tensor",
]
"""The reason why a type is not allowed at its place."""


class TypeNotAllowed(Diagnostic, code="KG0311"):
    MESSAGE = "{place} can't be '{type}'."
    HELP = {
        "bool": "Use 'u32', and compare it.",
        "bool field": "Use 'u32', and compare it with 0.",
        "bools": "Use 'u32', and compare the elements with 0.",
        "half": (
            "Use '{instead}': '{type}' is for elements of tensors and members of structs "
            "only."
        ),
        "narrow": (
            "Use '{instead}': '{type}' is for elements of inputs and outputs only."
        ),
        "cast": "Write 'quantizeToF16({instead})' to round to an f16.",
        "constant": "Use 'f32', 'i32' or 'u32'.",
        "constants": "A constant is one number: '{instead}'.",
        "struct": "Take the members that are needed, and pass them one by one.",
        "tensor": "Take '{instead}', and pass an element, as in 'f(x[i])'.",
    }
    case: NotAllowed
    place: str
    type: str
    instead: str = ""


class VectorDefault(Diagnostic, code="KG0312"):
    MESSAGE = "The default of '{type}' gives all its components."
    HELP = "Write '{example}'."
    type: str
    example: str


class CastToBool(Diagnostic, code="KG0313"):
    MESSAGE = "There is no cast to 'bool'."
    HELP = "Compare instead: '{argument} != 0'."
    argument: str


class ArgumentType(Diagnostic, code="KG0314"):
    MESSAGE = "'{parameter}' of '{function}' is '{expected}', but this is '{actual}'."
    LABEL = "'{actual}'"
    other: Span = related("declared here")
    function: str
    parameter: str
    expected: str
    actual: str
    remedy: str
