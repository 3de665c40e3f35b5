"""What can be wrong with a WGSL file that is to be bound: codes KG14xx."""

from __future__ import annotations

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class WgslSyntax(
    Diagnostic,
    code="KG1401",
    message="Expected {expected}, found {found}.",
):
    expected: str
    found: str


class UnexpectedCharacter(
    Diagnostic,
    code="KG1402",
    message="'{character}' begins no token of WGSL.",
):
    character: str


class UnclosedComment(
    Diagnostic,
    code="KG1403",
    message="A comment is not closed.",
    label="it begins here",
    help="Comments may hold others: each '/*' needs its '*/'.",
):
    pass


class UnfinishedDeclaration(
    Diagnostic,
    code="KG1404",
    message="The file ends before this is closed by a '{missing}'.",
    label="opened here",
):
    missing: str


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
    message="'{name}' is no type of WGSL, but one of {tool}.",
    help="Bindings are made for WGSL that every implementation accepts.",
):
    name: str
    tool: str


class UnknownWgslName(
    Diagnostic,
    code="KG1407",
    message="There is no {what} '{name}' in this file.",
    help="{remedy}",
):
    what: str
    name: str
    remedy: str


class DeclaredTwice(
    Diagnostic,
    code="KG1408",
    message="'{name}' is declared twice.",
    related={"first": "the first one is here"},
):
    name: str
    first: Span


class NotConstant(
    Diagnostic,
    code="KG1409",
    message="{what} is not known before the shader runs: {why}.",
    help="kerngen evaluates numbers, 'const' names, operators and conversions.",
):
    what: str
    why: str


class WrongValue(
    Diagnostic,
    code="KG1410",
    message="{what} is {value}; expected {expected}.",
):
    what: str
    value: str
    expected: str


class NotShareable(
    Diagnostic,
    code="KG1411",
    message="'{name}' can't be in a buffer: {why}.",
):
    name: str
    why: str


class MisplacedRuntimeArray(
    Diagnostic,
    code="KG1412",
    message="An array without a length is the last member of a struct, or a whole "
    "variable in the address space 'storage'.",
):
    pass


class MissingBinding(
    Diagnostic,
    code="KG1413",
    message="'{name}' has no '@{missing}'.",
    help="A variable in a buffer, a texture or a sampler has '@group' and '@binding'.",
):
    name: str
    missing: str


class SameBinding(
    Diagnostic,
    code="KG1414",
    message="'{name}' and '{other}' have the same group and binding, and '{entry}' "
    "reads both.",
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
):
    name: str


class NagaMisreads(
    Diagnostic,
    code="KG1416",
    message="naga, and so wgpu, lays '{struct}' out otherwise than WGSL: it forgets the "
    "'@align' within the type of '{member}' (gfx-rs/wgpu 4377).",
    help="Write the same '@align' at '{member}' itself.",
):
    member: str
    struct: str
