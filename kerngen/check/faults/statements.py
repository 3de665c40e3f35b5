"""What can be wrong with parameters and statements: codes KG05xx."""

from __future__ import annotations

from typing import Literal

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class WriteToInput(
    Diagnostic,
    code="KG0501",
    message="'{name}' is an input; it can't be written.",
    help=(
        "Declare it 'mut {name}' to change it in place, or make it an output: '-> "
        "{name}: {type}'."
    ),
    related={"other": "declared without 'mut'"},
):
    other: Span
    name: str
    type: str


class WriteToValue(
    Diagnostic,
    code="KG0502",
    message="'{name}' is {kind}; it can't be written.",
    help={
        "sum": "{sum}",
        "let": "A let is a value and never changes: define another one.",
        "host": "A host is a value and never changes: define another one.",
        "constant": "A constant never changes: name another value by 'let'.",
        "dim": "A dim is the length of an axis, which the arguments of a call give.",
        "scalar": (
            "A number that a kernel changes is a tensor of rank 0: 'mut {name}: "
            "{type}[]'."
        ),
        "other": "",
    },
    related={"declared": "'{name}' is declared here"},
):
    case: Literal["sum", "let", "host", "constant", "dim", "scalar", "other"]
    declared: Span | None = None
    name: str
    kind: str
    sum: str = ""
    type: str = ""


class ReadBeforeWrite(
    Diagnostic,
    code="KG0503",
    message="The output '{name}' is read before it is written.",
    help={
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
    },
    related={"other": "'{name}' is declared here"},
):
    case: Literal["first", "at once", "sum"]
    other: Span
    name: str
    sum: str = ""


class NeverWritten(
    Diagnostic,
    code="KG0504",
    message="The output '{name}' is never written.",
    help="Add a statement '{example} = ...;'.",
):
    name: str
    example: str


class LeftSubscript(
    Diagnostic,
    code="KG0505",
    message="'{text}' on the left is {what}, not an index.",
    help="{remedy}",
    related={"declared": "'{text}' is declared here"},
):
    declared: Span | None = None
    text: str
    what: str
    remedy: str


class PositionRange(
    Diagnostic,
    code="KG0520",
    message="The range of '{name}' in the position '{text}' can't be inferred.",
    label="it subscripts no axis by itself on the right",
    help=(
        "Name what is stored, with the range: 'let {let}[{name} < ...] = ...;', then "
        "'{let}[{name}]' on the right."
    ),
):
    name: str
    text: str
    let: str


class RepeatedLeftIndex(
    Diagnostic,
    code="KG0506",
    message="The index '{name}' is on the left twice.",
    help="{remedy}",
    related={"other": "first here"},
):
    other: Span
    name: str
    remedy: str


class FunctionReads(
    Diagnostic,
    code="KG0507",
    message="A function can't use {what}.",
    help="Do this in a kernel, and pass the value.",
):
    what: str


class HostReads(
    Diagnostic,
    code="KG0508",
    message="A host can't use {what}.",
    help=(
        "A host is computed before the kernel runs, from dims, scalars, constants and "
        "earlier hosts; 'let' computes on the device."
    ),
    related={"declared": "declared here"},
):
    declared: Span | None = None
    what: str


class HostType(
    Diagnostic,
    code="KG0509",
    message="A host is a number, but this is 'bool'.",
    help="Choose between numbers: 'if ... {{ 1 }} else {{ 0 }}'.",
):
    """A host that is true or false."""


class MutableScalar(
    Diagnostic,
    code="KG0510",
    message="'{name}' is {kind}; only tensors can be 'mut'.",
    help="For one number that the kernel changes, use '{name}: f32[]'.",
):
    """A scalar parameter declared `mut`."""

    name: str
    kind: str


class TensorDefault(
    Diagnostic,
    code="KG0511",
    message="'{name}' can't have a default: it is {kind}.",
    help="Leave it out; callers pass the tensor.",
):
    name: str
    kind: str


class NoResult(
    Diagnostic,
    code="KG0512",
    message="The kernel '{name}' has neither an output nor a 'mut' tensor.",
    help="Add an output: 'kernel {name}(...) -> y: f32[n]'.",
):
    name: str


class OutputForm(
    Diagnostic,
    code="KG0513",
    message="The output '{name}' is a scalar; outputs are tensors.",
    help="A single number is a tensor of rank 0: '{name}: {type}[]'.",
):
    name: str
    type: str


class NothingWritten(
    Diagnostic,
    code="KG0515",
    message="The kernel '{name}' writes nothing.",
    help="Write to one of its 'mut' tensors.",
):
    """A kernel with `mut` tensors alone that writes none of them."""

    name: str
