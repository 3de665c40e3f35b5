"""Diagnostics of names, and of gradient and derivative items: codes KG02xx and KG12xx."""

from __future__ import annotations

from typing import Literal

from kerngen.source.diagnostic import Diagnostic, related
from kerngen.source.text import Span


class UnknownName(Diagnostic, code="KG0201"):
    MESSAGE = "Unknown name '{text}'."
    remedy: str


class UnknownFunction(Diagnostic, code="KG0202"):
    MESSAGE = "Unknown function '{text}'."
    remedy: str


class UnknownType(Diagnostic, code="KG0203"):
    MESSAGE = "Unknown type '{text}'."
    HELP = "Use one of the language's own, or declare 'struct {text} {{ ... }}'."
    remedy: str


class DuplicateItem(Diagnostic, code="KG0204"):
    MESSAGE = "There are two {kind} called '{name}'."
    HELP = "Rename one of them."
    other: Span = related("the first one")
    kind: str
    name: str


class ClashWithUsedFile(Diagnostic, code="KG0214"):
    MESSAGE = "'{path}', which is used here, has a {kind} '{text}' too."
    HELP = "Rename one of them."
    kind: str
    path: str
    theirs: Span = related("the {kind} of '{path}'")
    use: Span = related("used here")


class UsedFilesClash(Diagnostic, code="KG0215"):
    MESSAGE = "'{first}' and '{path}' both have a {kind} '{name}'."
    HELP = "Rename one of them, or use one file only."
    kind: str
    name: str
    first: str
    path: str
    use: Span = related("the first '{name}' comes from here")
    one: Span = related("the one")
    other: Span = related("the other")


class NameClash(Diagnostic, code="KG0205"):
    MESSAGE = "'{text}' is already {taken}."
    LABEL = "used for {wanted} here"
    other: Span = related("{taken} here")
    wanted: str
    taken: str

    @property
    def help(self) -> str:
        """The correction: a parameter that repeats a dim is not needed."""
        if self.wanted == "a dim":
            return (
                "A dim can be read without being passed: leave out the parameter, or "
                "rename one of the two."
            )
        if (self.wanted, self.taken) == ("an output", "a parameter"):
            return (
                f"To change '{self.text}' in place, declare it 'mut {self.text}' and "
                "leave out the output; or rename one of the two."
            )
        if self.wanted == "a let" and self.taken in {"an output", "a 'mut' tensor"}:
            return "Assign it without 'let'."
        if self.wanted == "an index":
            return "Give the index a name of its own, such as 'i' or 'p'."
        return "Rename one of the two."


class BuiltinClash(Diagnostic, code="KG0206"):
    MESSAGE = "'{text}' is a built-in function."
    HELP = "Call the function something else."


class Recursion(Diagnostic, code="KG0207"):
    MESSAGE = "The function '{text}' calls itself: {chain}."
    HELP = (
        "To repeat something, use a reduction in a kernel, such as 'prod[i < n] ...'."
    )
    chain: str
    calls: tuple[Span, ...] = related("calls '{here}' here", default=())


class UnknownMember(Diagnostic, code="KG0208"):
    MESSAGE = "'{type}' has no component '{text}'."
    HELP = "Its components are {components}."
    type: str
    components: tuple[str, ...]


class MemberOfScalar(Diagnostic, code="KG0209"):
    MESSAGE = "'{base}' is {kind}, which has no members."
    declared: Span | None = related("'{base}' is declared here", default=None)
    base: str
    kind: str
    remedy: str = ""


class ArgumentCount(Diagnostic, code="KG0210"):
    MESSAGE = "'{function}' takes {expected:argument}, got {actual}."
    declared: Span | None = related("'{function}' is declared here", default=None)
    function: str
    expected: int
    actual: int
    remedy: str = ""


class UsedBeforeDefinition(Diagnostic, code="KG0211"):
    MESSAGE = "'{text}' is used before its definition."
    HELP = {
        "constant": "Move its definition up; no constant depends on itself.",
        "own": "Its own value can't use it: give the new value another name.",
        "mutual": (
            "Lets that read each other are one let of vectors, which may read itself: "
            "'let s[t] = if t > 0 {{ vec2f(s[t - 1].y, s[t - 1].x) }} else {{ ... }};'."
        ),
        "later": "Move the definition up.",
    }
    case: Literal["constant", "own", "mutual", "later"]
    other: Span = related("defined here")


class ReductionAsCall(Diagnostic, code="KG0212"):
    MESSAGE = "'{text}' is a reduction, not a function."
    HELP = "Name the index to reduce over, and subscript with it: '{example}'."
    example: str


class TensorAsFunction(Diagnostic, code="KG0213"):
    MESSAGE = "'{text}' is {kind}, not a function."
    HELP = "An element of a tensor is read with brackets: '{text}[i]'."
    declared: Span | None = related("'{text}' is declared here", default=None)
    kind: str


class CallsTooDeep(Diagnostic, code="KG0216"):
    MESSAGE = (
        "The calls in '{text}', and in what it calls, are nested more than {limit} "
        "deep."
    )
    HELP = "Merge some of these functions, or call some of them from the kernel."
    limit: int


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
