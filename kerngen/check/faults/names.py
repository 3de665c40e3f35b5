"""What can be wrong with names: codes KG02xx."""

from __future__ import annotations

from typing import Literal

from kerngen.source.counted import counted
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span


class UnknownName(
    Diagnostic, code="KG0201", message="Unknown name '{name}'.", help="{remedy}"
):
    name: str
    remedy: str


class UnknownFunction(
    Diagnostic, code="KG0202", message="Unknown function '{name}'.", help="{remedy}"
):
    name: str
    remedy: str


class UnknownType(
    Diagnostic,
    code="KG0203",
    message="Unknown type '{name}'.",
    help=(
        "{remedy}",
        "Use one of the language's own, or declare 'struct {name} {{ ... }}'.",
    ),
):
    name: str
    remedy: str


class DuplicateItem(
    Diagnostic,
    code="KG0204",
    message="There are two {kind} called '{name}'.",
    help="Rename one of them.",
    related={"other": "the first one"},
):
    other: Span
    kind: str
    name: str


class ClashWithUsedFile(
    Diagnostic,
    code="KG0214",
    message="'{path}', which is used here, has a {kind} '{name}' too.",
    help="Rename one of them.",
    related={"theirs": "the {kind} of '{path}'", "use": "used here"},
):
    kind: str
    name: str
    path: str
    theirs: Span
    use: Span


class UsedFilesClash(
    Diagnostic,
    code="KG0215",
    message="'{first}' and '{path}' both have a {kind} '{name}'.",
    help="Rename one of them, or use one file only.",
    related={
        "use": "the first '{name}' comes from here",
        "one": "the one",
        "other": "the other",
    },
):
    kind: str
    name: str
    first: str
    path: str
    use: Span
    one: Span
    other: Span


class NameClash(
    Diagnostic,
    code="KG0205",
    message="'{name}' is already {taken}.",
    label="used for {wanted} here",
    help="{remedy}",
    related={"other": "{taken} here"},
):
    other: Span
    name: str
    wanted: str
    taken: str

    @property
    def remedy(self) -> str:
        """What to do: a parameter that repeats a dim is not needed."""
        if self.wanted == "a dim":
            return (
                "A dim can be read without being passed: leave out the parameter, or "
                "rename one of the two."
            )
        if (self.wanted, self.taken) == ("an output", "a parameter"):
            return (
                f"To change '{self.name}' in place, declare it 'mut {self.name}' and "
                "leave out the output; or rename one of the two."
            )
        if self.wanted == "a let" and self.taken in {"an output", "a 'mut' tensor"}:
            return "Assign it without 'let'."
        if self.wanted == "an index":
            return "Give the index a name of its own, such as 'i' or 'p'."
        return "Rename one of the two."


class BuiltinClash(
    Diagnostic,
    code="KG0206",
    message="'{name}' is a built-in function.",
    help="Call the function something else.",
):
    name: str


class Recursion(
    Diagnostic,
    code="KG0207",
    message="The function '{name}' calls itself: {chain}.",
    help="To repeat something, use a reduction in a kernel, such as 'prod[i < n] ...'.",
    related={"calls": "calls '{here}' here"},
):
    name: str
    chain: str
    calls: tuple[Span, ...] = ()


class UnknownMember(
    Diagnostic,
    code="KG0208",
    message="'{type}' has no component '{member}'.",
    help="Its components are {components}.",
):
    type: str
    member: str
    components: str


class MemberOfScalar(
    Diagnostic,
    code="KG0209",
    message="'{base}' is {kind}, which has no members.",
    help="{remedy}",
    related={"declared": "'{base}' is declared here"},
):
    declared: Span | None = None
    base: str
    kind: str
    remedy: str = ""


class ArgumentCount(
    Diagnostic,
    code="KG0210",
    message="'{function}' takes {wanted}, got {actual}.",
    help="{remedy}",
    related={"declared": "'{function}' is declared here"},
):
    declared: Span | None = None
    function: str
    expected: int
    actual: int
    remedy: str = ""

    @property
    def wanted(self) -> str:
        """The number of parameters, in words."""
        return counted(self.expected, "argument")


class UsedBeforeDefinition(
    Diagnostic,
    code="KG0211",
    message="'{name}' is used before its definition.",
    help={
        "constant": "Move its definition up; no constant depends on itself.",
        "own": "Its own value can't use it: give the new value another name.",
        "mutual": (
            "Lets that read each other are one let of vectors, which may read itself: "
            "'let s[t] = if t > 0 {{ vec2f(s[t - 1].y, s[t - 1].x) }} else {{ ... }};'."
        ),
        "later": "Move the definition up.",
    },
    related={"other": "defined here"},
):
    case: Literal["constant", "own", "mutual", "later"]
    other: Span
    name: str


class ReductionAsCall(
    Diagnostic,
    code="KG0212",
    message="'{name}' is a reduction, not a function.",
    help="Name the index to reduce over, and subscript with it: '{example}'.",
):
    """A reduction written like a call: `sum(x)`."""

    name: str
    example: str


class TensorAsFunction(
    Diagnostic,
    code="KG0213",
    message="'{name}' is {kind}, not a function.",
    help="An element of a tensor is read with brackets: '{name}[i]'.",
    related={"declared": "'{name}' is declared here"},
):
    """A tensor read with parentheses: `x(i)`."""

    declared: Span | None = None
    name: str
    kind: str


class CallsTooDeep(
    Diagnostic,
    code="KG0216",
    message=(
        "The calls in '{name}', and in what it calls, are nested more than {limit} "
        "deep."
    ),
    help="Merge some of these functions, or call some of them from the kernel.",
):
    name: str
    limit: int
