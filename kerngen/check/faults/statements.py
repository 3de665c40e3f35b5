"""Diagnostics of statements, recurrences and `require`: codes KG05xx, KG13xx, KG09xx."""

from __future__ import annotations

from typing import Literal

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class WriteToInput(Diagnostic, code="KG0501"):
    MESSAGE = "'{text}' is an input; it can't be written."
    HELP = (
        "Declare it 'mut {text}' to change it in place, or make it an output: '-> "
        "{text}: {type}'."
    )
    other: Span = related("declared without 'mut'")
    type: str


class WriteToValue(Diagnostic, code="KG0502"):
    MESSAGE = "'{text}' is {kind}; it can't be written."
    HELP = {
        "sum": "{sum}",
        "let": "A let is a value and never changes: define another one.",
        "host": "A host is a value and never changes: define another one.",
        "constant": "A constant never changes: name another value by 'let'.",
        "dim": "A dim is the length of an axis, which the arguments of a call give.",
        "scalar": (
            "A number that a kernel changes is a tensor of rank 0: 'mut {text}: "
            "{type}[]'."
        ),
        "other": "",
    }
    case: Literal["sum", "let", "host", "constant", "dim", "scalar", "other"]
    declared: Span | None = related("'{text}' is declared here", default=None)
    kind: str
    sum: str = ""
    type: str = ""


class ReadBeforeWrite(Diagnostic, code="KG0503"):
    MESSAGE = "The output '{name}' is read before it is written."
    HELP = {
        "first": (
            "Write it first, with '='; to change a tensor of the caller's, make it a "
            "'mut' parameter."
        ),
        "at once": (
            "A statement computes all elements as if at once, from what was there "
            "before. A running sum is 'sum[j when j <= i] x[j]'; other recurrences are "
            "lets, which may read themselves: 'let h[t] = if t > 0 {{ h[t - 1] ... }} "
            "else {{ ... }};', then 'y[t] = h[t];'."
        ),
        "sum": "{sum}",
    }
    case: Literal["first", "at once", "sum"]
    other: Span = related("'{name}' is declared here")
    name: str
    sum: str = ""


class NeverWritten(Diagnostic, code="KG0504"):
    MESSAGE = "The output '{text}' is never written."
    HELP = "Add a statement '{example} = ...;'."
    example: str


class LeftSubscript(Diagnostic, code="KG0505"):
    MESSAGE = "'{text}' on the left is {what}, not an index."
    declared: Span | None = related("'{text}' is declared here", default=None)
    what: str
    remedy: str


class PositionRange(Diagnostic, code="KG0520"):
    MESSAGE = "The range of '{text}' in the position '{position}' can't be inferred."
    LABEL = "it subscripts no axis by itself on the right"
    HELP = (
        "Name what is stored, with the range: 'let {let}[{text} < ...] = ...;', then "
        "'{let}[{text}]' on the right."
    )
    position: str
    let: str


class RepeatedLeftIndex(Diagnostic, code="KG0506"):
    MESSAGE = "The index '{text}' is on the left twice."
    other: Span = related("first here")
    remedy: str


class FunctionReads(Diagnostic, code="KG0507"):
    MESSAGE = "A function can't use {what}."
    HELP = "Do this in a kernel, and pass the value."
    what: str


class HostReads(Diagnostic, code="KG0508"):
    MESSAGE = "A host can't use {what}."
    HELP = (
        "A host is computed before the kernel runs, from dims, scalars, constants and "
        "earlier hosts; 'let' computes on the device."
    )
    declared: Span | None = related("declared here", default=None)
    what: str


class HostType(Diagnostic, code="KG0509"):
    MESSAGE = "A host is a number, but this is 'bool'."
    HELP = "Choose between numbers: 'if ... {{ 1 }} else {{ 0 }}'."


class MutableScalar(Diagnostic, code="KG0510"):
    MESSAGE = "'{name}' is {kind}; only tensors can be 'mut'."
    HELP = "For one number that the kernel changes, use '{name}: f32[]'."
    name: str
    kind: str


class TensorDefault(Diagnostic, code="KG0511"):
    MESSAGE = "'{name}' can't have a default: it is {kind}."
    HELP = "Leave it out; callers pass the tensor."
    name: str
    kind: str


class NoResult(Diagnostic, code="KG0512"):
    MESSAGE = "The kernel '{text}' has neither an output nor a 'mut' tensor."
    HELP = "Add an output: 'kernel {text}(...) -> y: f32[n]'."


class OutputForm(Diagnostic, code="KG0513"):
    MESSAGE = "The output '{name}' is a scalar; outputs are tensors."
    HELP = "A single number is a tensor of rank 0: '{name}: {type}[]'."
    name: str
    type: str


class NothingWritten(Diagnostic, code="KG0515"):
    MESSAGE = "The kernel '{text}' writes nothing."
    HELP = "Write to one of its 'mut' tensors."


class ReadsItself(Diagnostic, code="KG1301"):
    MESSAGE = "'{text}' is what is being defined here."
    HELP = (
        "Read '{name}' at an earlier or later value of one index, such as 't - 1'; or "
        "give the new values another name."
    )
    name: str


class BothDirections(Diagnostic, code="KG1302"):
    MESSAGE = "'{name}' reads itself at earlier and at later values of '{index}'."
    HELP = (
        "What comes first can't depend on what comes after it: read one side only, or "
        "make two lets, one for each direction."
    )
    other: Span = related("earlier here")
    name: str
    index: str


class DistanceNotLiteral(Diagnostic, code="KG1303"):
    MESSAGE = "The distance at which '{name}' reads itself is no literal."
    HELP = (
        "Write a number or a constant, as in '{index} - 1': it decides in which order "
        "elements are computed, and how many are kept."
    )
    name: str
    index: str


class UnguardedBorder(Diagnostic, code="KG1304"):
    MESSAGE = (
        "Nothing excludes the {border} values of '{index}', where '{text}' is outside."
    )
    HELP = (
        "Read it in a branch of its own: 'if {condition} {{ {text} }} else {{ ... }}'."
    )
    index: str
    border: str
    condition: str


class NoOrder(Diagnostic, code="KG1305"):
    MESSAGE = (
        "There is no index along which '{name}' reads only earlier values of itself: "
        "{reads}."
    )
    HELP = (
        "All of its reads must be at 't - 1', or some other literal, of the same "
        "index; of a table that is filled along two indices, compute a diagonal per "
        "step."
    )
    name: str
    reads: str


class RequireReads(Diagnostic, code="KG0901"):
    MESSAGE = "A 'require' can't use {what}."
    HELP = (
        "It is checked before the kernel runs, and is made of dims, integer scalars, "
        "constants, arithmetic and comparisons: 'require d % 8 == 0;'."
    )
    declared: Span | None = related("declared here", default=None)
    what: str


class RequireType(Diagnostic, code="KG0902"):
    MESSAGE = "What is required is true or false, but this is a number."
    HELP = "Compare it with something: 'require {example};'."
    example: str


class NeverMet(Diagnostic, code="KG0903"):
    MESSAGE = "No call of '{kernel}' meets '{text}'."
    HELP = {
        "alone": "It refuses every call: turn the comparison around.",
        "beside": "It contradicts those above it: change one of them.",
    }
    case: Literal["alone", "beside"]
    kernel: str


class AlwaysMet(Diagnostic, code="KG0904"):
    MESSAGE = "Every call of '{kernel}' meets '{text}'."
    HELP = {
        "alone": "It refuses nothing: remove it, or turn the comparison around.",
        "beside": "It follows from those above it: remove it.",
    }
    case: Literal["alone", "beside"]
    kernel: str
