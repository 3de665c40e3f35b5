"""What can be wrong with names: codes KG02xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.diagnostic import Related
from kerngen.source.text import Span
from kerngen.source.worded import Worded, WordedBeside, WordedNear, counted


@final
@dataclass(frozen=True, kw_only=True)
class UnknownName(Worded):
    """A name that nothing in reach introduces."""

    code: ClassVar[str] = "KG0201"
    rule: ClassVar[str] = "A name is introduced before it is used."
    says: ClassVar[str] = "Unknown name '{name}'."
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class UnknownFunction(Worded):
    """A call of something that is no function."""

    code: ClassVar[str] = "KG0202"
    rule: ClassVar[str] = "A call names a function, a built-in or a cast."
    says: ClassVar[str] = "Unknown function '{name}'."
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class UnknownType(Worded):
    """A type that the language does not have."""

    code: ClassVar[str] = "KG0203"
    rule: ClassVar[str] = "A type is one of the language's own, or a struct."
    says: ClassVar[str] = "Unknown type '{name}'."
    advice: ClassVar[str] = "{instead}"

    name: str
    remedy: str

    @property
    def instead(self) -> str:
        """What is meant, or how a type is declared."""
        declare = (
            f"Use one of the language's own, or declare 'struct {self.name} {{ ... }}'."
        )
        return self.remedy or declare


@final
@dataclass(frozen=True, kw_only=True)
class DuplicateItem(WordedBeside):
    """Two items of one kind and name in a file."""

    code: ClassVar[str] = "KG0204"
    rule: ClassVar[str] = "Items of one kind have distinct names."
    says: ClassVar[str] = "There are two {kind} called '{name}'."
    beside: ClassVar[str] = "the first one"
    advice: ClassVar[str] = "Rename one of them."

    kind: str
    name: str


@final
@dataclass(frozen=True, kw_only=True)
class ClashWithUsedFile(Worded):
    """An item whose name a file that is used has for one of its own."""

    code: ClassVar[str] = "KG0214"
    rule: ClassVar[str] = (
        "A file's own items have other names than the items of files that it uses."
    )
    says: ClassVar[str] = "'{path}', which is used here, has a {kind} '{name}' too."
    advice: ClassVar[str] = "Rename one of them."

    kind: str
    name: str
    path: str
    theirs: Span
    use: Span

    @property
    def related(self) -> tuple[Related, ...]:
        """The other item, and what brings it in."""
        return (
            Related(self.theirs, f"the {self.kind} of '{self.path}'"),
            Related(self.use, "used here"),
        )


@final
@dataclass(frozen=True, kw_only=True)
class UsedFilesClash(Worded):
    """Two files that are used together and have items of one name."""

    code: ClassVar[str] = "KG0215"
    rule: ClassVar[str] = "Files that are used together have items of distinct names."
    says: ClassVar[str] = "'{first}' and '{path}' both have a {kind} '{name}'."
    advice: ClassVar[str] = "Rename one of them, or use one file only."

    kind: str
    name: str
    first: str
    path: str
    use: Span
    items: tuple[Span, Span]

    @property
    def related(self) -> tuple[Related, ...]:
        """The first use, and both items."""
        one, other = self.items
        return (
            Related(self.use, f"the first '{self.name}' comes from here"),
            Related(one, "the one"),
            Related(other, "the other"),
        )


@final
@dataclass(frozen=True, kw_only=True)
class NameClash(WordedBeside):
    """A name that is taken within its name space."""

    code: ClassVar[str] = "KG0205"
    rule: ClassVar[str] = "Each value of a kernel or function has a name of its own."
    says: ClassVar[str] = "'{name}' is already {taken}."
    points: ClassVar[str] = "used for {wanted} here"
    beside: ClassVar[str] = "{taken} here"
    advice: ClassVar[str] = "{remedy}"

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


@final
@dataclass(frozen=True, kw_only=True)
class BuiltinClash(Worded):
    """A function that has the name of a built-in, or of a type."""

    code: ClassVar[str] = "KG0206"
    rule: ClassVar[str] = "Functions and built-ins share one name space."
    says: ClassVar[str] = "'{name}' is a built-in function."
    advice: ClassVar[str] = "Call the function something else."

    name: str


@final
@dataclass(frozen=True, kw_only=True)
class Recursion(Worded):
    """A function that needs itself."""

    code: ClassVar[str] = "KG0207"
    rule: ClassVar[str] = "Functions are not recursive."
    says: ClassVar[str] = "The function '{name}' calls itself: {chain}."
    advice: ClassVar[str] = (
        "To repeat something, use a reduction in a kernel, such as 'prod[i < n] ...'."
    )

    name: str
    chain: str
    calls: tuple[Span, ...] = ()

    @property
    def related(self) -> tuple[Related, ...]:
        """The calls that make the circle."""
        return tuple(Related(call, f"calls '{call.text}' here") for call in self.calls)


@final
@dataclass(frozen=True, kw_only=True)
class UnknownMember(Worded):
    """A component that the vector does not have."""

    code: ClassVar[str] = "KG0208"
    rule: ClassVar[str] = "A member is a component of a vector."
    says: ClassVar[str] = "'{type}' has no component '{member}'."
    advice: ClassVar[str] = "Its components are {components}."

    type: str
    member: str
    components: str


@final
@dataclass(frozen=True, kw_only=True)
class MemberOfScalar(WordedNear):
    """A member of something that has none."""

    code: ClassVar[str] = "KG0209"
    rule: ClassVar[str] = "Only vectors have members."
    says: ClassVar[str] = "'{base}' is {kind}, which has no members."
    nearby: ClassVar[str] = "'{base}' is declared here"
    advice: ClassVar[str] = "{remedy}"

    base: str
    kind: str
    remedy: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class ArgumentCount(WordedNear):
    """A call with too few or too many arguments."""

    code: ClassVar[str] = "KG0210"
    rule: ClassVar[str] = "A call has as many arguments as its function has parameters."
    says: ClassVar[str] = "'{function}' takes {wanted}, got {actual}."
    nearby: ClassVar[str] = "'{function}' is declared here"
    advice: ClassVar[str] = "{remedy}"

    function: str
    expected: int
    actual: int
    remedy: str = ""

    @property
    def wanted(self) -> str:
        """The number of parameters, in words."""
        return counted(self.expected, "argument")


@final
@dataclass(frozen=True, kw_only=True)
class UsedBeforeDefinition(WordedBeside):
    """A let, host or constant that is used above its definition."""

    code: ClassVar[str] = "KG0211"
    rule: ClassVar[str] = "Statements run in order: a value is defined before its uses."
    says: ClassVar[str] = "'{name}' is used before its definition."
    beside: ClassVar[str] = "defined here"
    advice: ClassVar[str] = "{remedy}"

    name: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class ReductionAsCall(Worded):
    """A reduction written like a call: `sum(x)`."""

    code: ClassVar[str] = "KG0212"
    rule: ClassVar[str] = "A reduction names its indices in brackets."
    says: ClassVar[str] = "'{name}' is a reduction, not a function."
    advice: ClassVar[str] = (
        "Name the index to reduce over, and subscript with it: '{example}'."
    )

    name: str
    example: str


@final
@dataclass(frozen=True, kw_only=True)
class TensorAsFunction(WordedNear):
    """A tensor read with parentheses: `x(i)`."""

    code: ClassVar[str] = "KG0213"
    rule: ClassVar[str] = "An element of a tensor is read with brackets."
    says: ClassVar[str] = "'{name}' is {kind}, not a function."
    nearby: ClassVar[str] = "'{name}' is declared here"
    advice: ClassVar[str] = "An element of a tensor is read with brackets: '{name}[i]'."

    name: str
    kind: str


@final
@dataclass(frozen=True, kw_only=True)
class CallsTooDeep(Worded):
    """A function that calls others that call others, beyond what is walked."""

    code: ClassVar[str] = "KG0216"
    rule: ClassVar[str] = "Calls of functions are nested no deeper than the limit."
    says: ClassVar[str] = (
        "The calls in '{name}', and in what it calls, are nested more than {limit} "
        "deep."
    )
    advice: ClassVar[str] = (
        "Merge some of these functions, or call some of them from the kernel."
    )

    name: str
    limit: int
