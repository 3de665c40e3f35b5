"""What can be wrong with a WGSL file that is to be bound: codes KG14xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class WgslSyntax(
    Diagnostic,
    code="KG1401",
    message="Expected {expected}, found {found}.",
    help="Declarations follow the grammar of https://www.w3.org/TR/WGSL.",
):
    expected: str
    found: str


class UnexpectedCharacter(
    Diagnostic,
    code="KG1402",
    message="No token of WGSL begins with '{character}'.",
    help="Remove it, or run the tool first that it belongs to.",
):
    character: str


class UnclosedComment(
    Diagnostic,
    code="KG1403",
    message="A comment is not closed.",
    label="it begins here",
    help="Comments may hold others: each '/*' needs a '*/' of its own.",
):
    pass


class UnclosedBody(
    Diagnostic,
    code="KG1404",
    message="The file ends inside of a function's body.",
    label="it begins here",
    help="Write the '}}' that is missing.",
):
    pass


class FileOfAnotherTool(
    Diagnostic,
    code="KG1405",
    message="'{found}' is not WGSL: the file is one of {tool}.",
    help="Bind what that tool makes of the file.",
):
    found: str
    tool: str


class NativeType(
    Diagnostic,
    code="KG1406",
    message="'{name}' is not a type of WGSL, but one of {tool}.",
    help="Bindings are made for WGSL alone: bind such a variable by hand.",
):
    name: str
    tool: str


class UnknownWgslName(
    Diagnostic,
    code="KG1407",
    message="There is no {what} '{name}' in this file.",
    help=("{remedy}", "Declare it, or bind a file that has all that it needs."),
):
    what: str
    name: str
    remedy: str = ""


class DeclaredTwice(
    Diagnostic,
    code="KG1408",
    message="'{name}' is declared twice.",
    help="Rename one of them.",
    related={"first": "the first one is here"},
):
    name: str
    first: Span


class NotConstant(
    Diagnostic,
    code="KG1409",
    message="{what} is not known from the file alone: {why}.",
    help="Write numbers, names of 'const', operators on them and conversions.",
):
    what: str
    why: str


class WrongValue(
    Diagnostic,
    code="KG1410",
    message="{what} can't be {value}.",
    help="It is {expected}.",
):
    what: str
    value: str
    expected: str


class NotShareable(
    Diagnostic,
    code="KG1411",
    message="'{name}' can't be bound: {why}.",
    help="{remedy}",
):
    name: str
    why: str
    remedy: str


class MisplacedRuntimeArray(
    Diagnostic,
    code="KG1412",
    message="An array without a length can't be here.",
    help="Give it a length, or let it be the last member of a struct.",
):
    pass


class MissingBinding(
    Diagnostic,
    code="KG1413",
    message="'{name}' has no '@{missing}'.",
    help="What a bind group binds has both '@group' and '@binding'.",
):
    name: str
    missing: str


class SameBinding(
    Diagnostic,
    code="KG1414",
    message="'{name}' has the group and the binding of '{other}', and '{entry}' uses both.",
    help="Give one of them another number.",
    related={"first": "the other one is here"},
):
    name: str
    other: str
    entry: str
    first: Span


class CircularDeclaration(
    Diagnostic,
    code="KG1415",
    message="'{name}' is declared by itself.",
    help="Declare it by something else.",
):
    name: str


class NestedTooDeep(
    Diagnostic,
    code="KG1417",
    message="An expression or a type is nested too deep to be read.",
    help="Split it by constants or aliases: no compiler takes such depths.",
):
    pass


class NagaMisreads(
    Diagnostic,
    code="KG1416",
    message="naga, and so wgpu, lays '{struct}' out otherwise than WGSL: it forgets the "
    "'@align' within the type of '{member}' (gfx-rs/wgpu 4377).",
    help="Write the same '@align' at '{member}' itself.",
):
    member: str
    struct: str
