"""What can be wrong with parameters and statements: codes KG05xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.worded import Worded, WordedBeside, WordedNear


@final
@dataclass(frozen=True, kw_only=True)
class WriteToInput(WordedBeside):
    """A write to a tensor that is only read."""

    code: ClassVar[str] = "KG0501"
    rule: ClassVar[str] = "Only outputs and 'mut' tensors are written."
    says: ClassVar[str] = "'{name}' is an input; it can't be written."
    beside: ClassVar[str] = "declared without 'mut'"
    advice: ClassVar[str] = (
        "Declare it 'mut {name}' to change it in place, or make it an output: "
        "'-> {name}: {type}'."
    )

    name: str
    type: str


@final
@dataclass(frozen=True, kw_only=True)
class WriteToValue(WordedNear):
    """A write to something that is no tensor."""

    code: ClassVar[str] = "KG0502"
    rule: ClassVar[str] = "Only outputs and 'mut' tensors are written."
    says: ClassVar[str] = "'{name}' is {kind}; it can't be written."
    nearby: ClassVar[str] = "'{name}' is declared here"
    advice: ClassVar[str] = "{remedy}"

    name: str
    kind: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ReadBeforeWrite(WordedBeside):
    """An output that is read before any statement wrote it."""

    code: ClassVar[str] = "KG0503"
    rule: ClassVar[str] = "An output is read only after it is written."
    says: ClassVar[str] = "The output '{name}' is read before it is written."
    beside: ClassVar[str] = "'{name}' is declared here"
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


WRITE_FIRST = (
    "Write it first, with '='; to change a tensor of the caller's, make it a 'mut' "
    "parameter."
)
AS_IF_AT_ONCE = (
    "A statement computes all elements as if at once, from what was there before. A "
    "running sum is 'sum[j when j <= i] x[j]'; other recurrences are lets, which may read "
    "themselves: 'let h[t] = if t > 0 { h[t - 1] ... } else { ... };', then 'y[t] = h[t];'."
)


@final
@dataclass(frozen=True, kw_only=True)
class NeverWritten(Worded):
    """An output that no statement writes."""

    code: ClassVar[str] = "KG0504"
    rule: ClassVar[str] = "Every output is written."
    says: ClassVar[str] = "The output '{name}' is never written."
    advice: ClassVar[str] = "Add a statement '{example} = ...;'."

    name: str
    example: str


@final
@dataclass(frozen=True, kw_only=True)
class LeftSubscript(WordedNear):
    """A subscript on the left that is no bare index, and no position."""

    code: ClassVar[str] = "KG0505"
    rule: ClassVar[str] = "The subscripts on the left are bare indices, or a position."
    says: ClassVar[str] = "'{text}' on the left is {what}, not an index."
    nearby: ClassVar[str] = "'{text}' is declared here"
    advice: ClassVar[str] = "{remedy}"

    text: str
    what: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class PositionRange(Worded):
    """An index in a position on the left that has no range on the right."""

    code: ClassVar[str] = "KG0520"
    rule: ClassVar[str] = (
        "An index of a position ranges over the first axis that it subscripts by itself "
        "on the right."
    )
    says: ClassVar[str] = (
        "The range of '{name}' in the position '{text}' can't be inferred."
    )
    points: ClassVar[str] = "it subscripts no axis by itself on the right"
    advice: ClassVar[str] = (
        "Name what is stored, with the range: "
        "'let {let}[{name} < ...] = ...;', then '{let}[{name}]' on the right."
    )

    name: str
    text: str
    let: str


@final
@dataclass(frozen=True, kw_only=True)
class RepeatedLeftIndex(WordedBeside):
    """One index twice on the left: a diagonal."""

    code: ClassVar[str] = "KG0506"
    rule: ClassVar[str] = "The indices on the left are distinct."
    says: ClassVar[str] = "The index '{name}' is on the left twice."
    beside: ClassVar[str] = "first here"
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class FunctionReads(Worded):
    """A function that uses what only kernels have."""

    code: ClassVar[str] = "KG0507"
    rule: ClassVar[str] = "A function uses only its arguments."
    says: ClassVar[str] = "A function can't use {what}."
    advice: ClassVar[str] = "Do this in a kernel, and pass the value."

    what: str


@final
@dataclass(frozen=True, kw_only=True)
class HostReads(WordedNear):
    """A host that uses what only the device knows."""

    code: ClassVar[str] = "KG0508"
    rule: ClassVar[str] = "A host is computed from dims, scalars, constants and hosts."
    says: ClassVar[str] = "A host can't use {what}."
    nearby: ClassVar[str] = "declared here"
    advice: ClassVar[str] = (
        "A host is computed before the kernel runs, from dims, scalars, constants and "
        "earlier hosts; 'let' computes on the device."
    )

    what: str


@final
@dataclass(frozen=True, kw_only=True)
class HostType(Worded):
    """A host that is true or false."""

    code: ClassVar[str] = "KG0509"
    rule: ClassVar[str] = "A host is a number."
    says: ClassVar[str] = "A host is a number, but this is 'bool'."
    advice: ClassVar[str] = "Choose between numbers: 'if ... {{ 1 }} else {{ 0 }}'."


@final
@dataclass(frozen=True, kw_only=True)
class MutableScalar(Worded):
    """A scalar parameter declared `mut`."""

    code: ClassVar[str] = "KG0510"
    rule: ClassVar[str] = "Only tensors are 'mut'."
    says: ClassVar[str] = "'{name}' is {kind}; only tensors can be 'mut'."
    advice: ClassVar[str] = (
        "For one number that the kernel changes, use '{name}: f32[]'."
    )

    name: str
    kind: str


@final
@dataclass(frozen=True, kw_only=True)
class TensorDefault(Worded):
    """A tensor with a default."""

    code: ClassVar[str] = "KG0511"
    rule: ClassVar[str] = "Only scalars and vectors of a kernel have defaults."
    says: ClassVar[str] = "'{name}' can't have a default: it is {kind}."
    advice: ClassVar[str] = "Leave it out; callers pass the tensor."

    name: str
    kind: str


@final
@dataclass(frozen=True, kw_only=True)
class NoResult(Worded):
    """A kernel that could not change anything."""

    code: ClassVar[str] = "KG0512"
    rule: ClassVar[str] = "A kernel has an output or a 'mut' tensor."
    says: ClassVar[str] = (
        "The kernel '{name}' has neither an output nor a 'mut' tensor."
    )
    advice: ClassVar[str] = "Add an output: 'kernel {name}(...) -> y: f32[n]'."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class OutputForm(Worded):
    """An output that is no tensor."""

    code: ClassVar[str] = "KG0513"
    rule: ClassVar[str] = "Outputs are tensors."
    says: ClassVar[str] = "The output '{name}' is a scalar; outputs are tensors."
    advice: ClassVar[str] = "A single number is a tensor of rank 0: '{name}: {type}[]'."

    name: str
    type: str


@final
@dataclass(frozen=True, kw_only=True)
class NothingWritten(Worded):
    """A kernel with `mut` tensors alone that writes none of them."""

    code: ClassVar[str] = "KG0515"
    rule: ClassVar[str] = "A kernel writes something."
    says: ClassVar[str] = "The kernel '{name}' writes nothing."
    advice: ClassVar[str] = "Write to one of its 'mut' tensors."

    name: str
