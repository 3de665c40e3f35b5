"""What can be wrong with types and constants: codes KG03xx."""

from __future__ import annotations

from typing import Literal, TypeAlias

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class TypeMismatch(
    Diagnostic,
    code="KG0301",
    message="{place} is '{expected}', but this is '{actual}'.",
    label="'{actual}'",
    help="{remedy}",
    related={"declared": "'{expected}' because of this"},
):
    declared: Span | None = None
    place: str
    expected: str
    actual: str
    remedy: str


class MixedTypes(
    Diagnostic,
    code="KG0302",
    message="'{what}' can't mix '{left}' and '{right}'.",
    help="{remedy}",
    related={"left_span": "'{left}'", "right_span": "'{right}'"},
):
    what: str
    left: str
    right: str
    left_span: Span
    right_span: Span
    remedy: str


class OperandType(
    Diagnostic,
    code="KG0303",
    message="'{operator}' works on {accepted}, but this is '{actual}'.",
    label="'{actual}'",
    help="{remedy}",
):
    operator: str
    accepted: str
    actual: str
    remedy: str


class ConditionType(
    Diagnostic,
    code="KG0304",
    message="A condition is true or false, but this is '{actual}'.",
    label="'{actual}'",
    help="Compare it with something: '{text} != 0'.",
):
    actual: str
    text: str


class BuiltinArguments(
    Diagnostic,
    code="KG0305",
    message="'{function}' does not take ({actual}).",
    label="it takes {accepted}",
    help="{remedy}",
):
    function: str
    actual: str
    accepted: str
    remedy: str


class LiteralRange(
    Diagnostic,
    code="KG0306",
    message="{value} does not fit '{type}', which holds {low} to {high}.",
    help=("{remedy}", "Write a value in that range."),
):
    value: str
    type: str
    low: str
    high: str
    remedy: str = ""


class NotConstant(
    Diagnostic,
    code="KG0307",
    message="{place} must be constant, but '{name}' is not.",
    help="Use literals, constants, operators and built-ins.",
    related={"declared": "'{name}' is declared here"},
):
    declared: Span | None = None
    place: str
    name: str


class NotFinite(
    Diagnostic,
    code="KG0308",
    message="This constant expression has no finite value in '{type}'.",
    help="It overflows, or an argument is outside of the function's domain.",
):
    type: str


class LiteralVanishes(
    Diagnostic,
    code="KG0316",
    message="{value} becomes 0 as an 'f32', whose smallest positive number is 1.4e-45.",
    help="Write '0.0', or a larger number; drivers may treat all below 1.2e-38 as 0.",
):
    value: str


class DivisionByZero(
    Diagnostic,
    code="KG0315",
    message="'{operator}' divides by 0 on the host, at every call.",
    label="always 0",
    help="Write a divisor that is not 0.",
):
    operator: str


class ConstantArguments(
    Diagnostic,
    code="KG0309",
    message="'{function}' is not defined for these constants: {reason}.",
    help="Change them, or make one of them a parameter.",
):
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
"""Why a type is not allowed where it is."""


class TypeNotAllowed(
    Diagnostic,
    code="KG0311",
    message="{place} can't be '{type}'.",
    help={
        "bool": "Use 'u32', and compare it.",
        "bool field": "Use 'u32', and compare it with 0.",
        "bools": "Use 'u32', and compare the elements with 0.",
        "half": (
            "Use '{instead}': '{type}' is for elements of tensors and members of structs "
            "only."
        ),
        "narrow": "Use '{instead}': '{type}' is for elements of tensors that are read.",
        "cast": "Write 'quantizeToF16({instead})' to round to an f16.",
        "constant": "Use 'f32', 'i32' or 'u32'.",
        "constants": "A constant is one number: '{instead}'.",
        "struct": "Take the members that are needed, and pass them one by one.",
        "tensor": "Take '{instead}', and pass an element, as in 'f(x[i])'.",
    },
):
    case: NotAllowed
    place: str
    type: str
    instead: str = ""


class VectorDefault(
    Diagnostic,
    code="KG0312",
    message="The default of '{type}' gives all its components.",
    help="Write '{example}'.",
):
    type: str
    example: str


class CastToBool(
    Diagnostic,
    code="KG0313",
    message="There is no cast to 'bool'.",
    help="Compare instead: '{text} != 0'.",
):
    text: str


class ArgumentType(
    Diagnostic,
    code="KG0314",
    message="'{parameter}' of '{function}' is '{expected}', but this is '{actual}'.",
    label="'{actual}'",
    help="{remedy}",
    related={"other": "declared here"},
):
    other: Span
    function: str
    parameter: str
    expected: str
    actual: str
    remedy: str
