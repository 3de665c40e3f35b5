"""Diagnostics of WGSL files that can't be bound: codes KG14xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class WgslSyntax(Diagnostic, code="KG1401"):
    MESSAGE = "Expected {expected}, found {found}."
    HELP = "Declarations follow the grammar of https://www.w3.org/TR/WGSL."
    expected: str
    found: str


class UnexpectedWgslCharacter(Diagnostic, code="KG1402"):
    MESSAGE = "No token of WGSL begins with '{character}'."
    HELP = "Remove it, or run the tool first that it belongs to."
    character: str


class UnclosedComment(Diagnostic, code="KG1403"):
    MESSAGE = "A comment is not closed."
    LABEL = "it begins here"
    HELP = "Comments may hold others: each '/*' needs a '*/' of its own."


class UnclosedBody(Diagnostic, code="KG1404"):
    MESSAGE = "The file ends inside of a function's body."
    LABEL = "it begins here"
    HELP = "Write the '}}' that is missing."


class FileOfAnotherTool(Diagnostic, code="KG1405"):
    MESSAGE = "'{found}' is not WGSL: the file is one of {tool}."
    HELP = "Bind what that tool makes of the file."
    found: str
    tool: str


class NativeType(Diagnostic, code="KG1406"):
    MESSAGE = "'{name}' is not a type of WGSL, but one of {tool}."
    HELP = "wgpu has no way to pass one from Python: use a type of WGSL."
    name: str
    tool: str


class UnknownWgslName(Diagnostic, code="KG1407"):
    MESSAGE = "There is no {what} '{name}' in this file."
    HELP = "Declare it, or bind a file that has all that it needs."
    what: str
    name: str
    remedy: str = ""


class DeclaredTwice(Diagnostic, code="KG1408"):
    MESSAGE = "'{name}' is declared twice."
    HELP = "Rename one of them."
    name: str
    first: Span = related("the first one is here")


class WgslNotConstant(Diagnostic, code="KG1409"):
    MESSAGE = "{what} is not known from the file alone: {why}."
    HELP = "Write numbers, names of 'const', operators on them and conversions."
    what: str
    why: str


class WrongValue(Diagnostic, code="KG1410"):
    MESSAGE = "{what} can't be {value}."
    HELP = "It is {expected}."
    what: str
    value: str
    expected: str


class NotShareable(Diagnostic, code="KG1411"):
    MESSAGE = "'{name}' can't be bound: {why}."
    name: str
    why: str
    remedy: str


class MisplacedRuntimeArray(Diagnostic, code="KG1412"):
    MESSAGE = "An array without a length can't be here."
    HELP = "Give it a length, or let it be the last member of a struct."


class MissingBinding(Diagnostic, code="KG1413"):
    MESSAGE = "'{name}' has no '@{missing}'."
    HELP = "What a bind group binds has both '@group' and '@binding'."
    name: str
    missing: str


class SameBinding(Diagnostic, code="KG1414"):
    MESSAGE = (
        "'{name}' has the group and the binding of '{other}', and '{entry}' uses both."
    )
    HELP = "Give one of them another number."
    name: str
    other: str
    entry: str
    first: Span = related("the other one is here")


class CircularDeclaration(Diagnostic, code="KG1415"):
    MESSAGE = "'{name}' is declared by itself."
    HELP = "Declare it by something else."
    name: str


class WgslNestedTooDeep(Diagnostic, code="KG1417"):
    MESSAGE = "An expression or a type is nested too deep to be read."
    HELP = "Split it by constants or aliases: no compiler takes such depths."


class MissingWorkgroupSize(Diagnostic, code="KG1418"):
    MESSAGE = "'{name}' has no '@workgroup_size'."
    HELP = "A compute shader has one: '@compute @workgroup_size(64)'."
    name: str


class NagaMisreads(Diagnostic, code="KG1416"):
    MESSAGE = (
        "naga, and so wgpu, lays '{struct}' out otherwise than WGSL: it forgets the "
        "'@align' within the type of '{member}' (gfx-rs/wgpu 4377)."
    )
    HELP = "Write the same '@align' at '{member}' itself."
    member: str
    struct: str
