"""The way back from a plan file to plans; a damaged one is refused, with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar, final

from kerngen.plan.parse import MOST, Parser, SizeSyntaxError
from kerngen.plan.size import ALWAYS, ZERO, Guard, Size
from kerngen.plan.tree import (
    Axes,
    Binding,
    DerivedDim,
    Dispatch,
    Gather,
    KernelPlan,
    ModulePlan,
    RangeCheck,
    ScalarPlan,
    Schedule,
    Scratch,
    Stage,
    TemporaryPlan,
    TensorPlan,
    Term,
    Variant,
)
from kerngen.plan.write import HEAD, NAMELESS, checksum_line

_Value = TypeVar("_Value")

ADAPTER_FACTS: Final = ("workgroup_bytes", "invocations", "subgroups", "f16")
"""What guards may ask of the adapter, as `adapter.<fact>`."""

_FACTS: Final = frozenset(f"adapter.{fact}" for fact in ADAPTER_FACTS)

_HEADER: Final = re.compile(r'kerngen plan (\d+) \| (".*") \| sha256 (\w*)')
_DECLARED: Final = re.compile(r"(\w+) ([\w<>, ]+?)\[(.*)\]")
_CHECKED: Final = re.compile(r'("(?:[^"\\]|\\.)*") (\d+) (\w+)')
_AROUND: Final = re.compile(r"around \[(.*)\]")
_TERM: Final = re.compile(r"term (\w+) by (.+)")
_SCRATCH: Final = re.compile(r"scratch (\w+)\[(.+)\]")
_RUN: Final = re.compile(r"run ([\w.-]+)\((.*)\)")
_CONSTANT: Final = re.compile(r"(\w+) = (\d+)")
_LET: Final = re.compile(r"(\w+) = (.+)")


class PlanSyntaxError(Exception):
    """A plan file is damaged: the number of its line, and what is wrong there."""

    def __init__(self, line: int, fault: str) -> None:
        """Name the line, from 1."""
        super().__init__(f"line {line}: {fault}")
        self.line = line
        self.fault = fault


class PlanVersionError(Exception):
    """A plan file is of another version of the format."""


@final
@dataclass(frozen=True, slots=True)
class _Line:
    """A line with its number, how far it is indented, and its fields."""

    number: int
    depth: int
    fields: tuple[str, ...]

    def refuse(self, fault: str) -> NoReturn:
        raise PlanSyntaxError(self.number, fault)

    def string(self, text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, str):
            self.refuse(f"expected a text in quotes, got {text}")
        return value


def read_plan(text: str) -> ModulePlan:
    """Return the plans of a file's text.

    Raises:
        PlanVersionError: If it is a plan of another version, or no plan.
        PlanSyntaxError: If anything in it is not as `plan_text` writes it.
    """
    first, _, _ = text.partition("\n")
    header = _HEADER.fullmatch(first)
    if header is None or not first.startswith(f"{HEAD} |"):
        raise PlanVersionError(f"expected '{HEAD}', got '{first[:60]}'")
    source = _Line(1, 0, ()).string(header[2])
    lines = list(_lines(_checked(text)))
    try:
        kernels = tuple(_Kernel(block).read() for block in _blocks(lines, 0))
    except RecursionError:
        raise PlanSyntaxError(1, "a size nests too deep") from None
    return ModulePlan(source, header[3], kernels)


def _checked(text: str) -> str:
    """Return a text without its last line, which must be the hash of the others."""
    body, end, last = text.rpartition("\n\nend ")
    if not end or last.count("\n") != 1:
        raise PlanSyntaxError(text.count("\n"), "the file is cut off: it has no 'end'")
    if checksum_line(f"{body}\n") != f"end {last[:-1]}":
        raise PlanSyntaxError(body.count("\n") + 3, "the lines above were changed")
    return f"{body}\n"


def _lines(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n")[1:], start=2):
        bare = line.lstrip(" ")
        if bare:
            depth, odd = divmod(len(line) - len(bare), 2)
            if odd:
                raise PlanSyntaxError(number, "indented by an odd number of spaces")
            yield _Line(number, depth, tuple(bare.split(" | ")))


def _blocks(lines: Sequence[_Line], depth: int) -> Iterator[Sequence[_Line]]:
    """Yield each line of a depth with the deeper lines behind it."""
    start = 0
    for at, line in enumerate(lines):
        if line.depth < depth or (at == 0 and line.depth != depth):
            line.refuse("unexpected indentation")
        if line.depth == depth and at > start:
            yield lines[start:at]
            start = at
    if lines:
        yield lines[start:]


@final
@dataclass(slots=True)
class _Kernel:
    """Reads the lines of one kernel."""

    block: Sequence[_Line]
    found: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    sizes: dict[str, Size] = field(default_factory=dict[str, Size])
    lengths: set[str] = field(default_factory=set[str])
    symbols: set[str] = field(default_factory=set[str])

    def read(self) -> KernelPlan:
        """Return the kernel."""
        head = self.block[0]
        name, origin = self._split(head, "kernel")
        for block in _blocks(self.block[1:], 1):
            self._fact(block)
        self._check_bindings(head)
        return KernelPlan(
            name=name,
            origin=origin,
            dims=tuple(self._all("dims")),
            tensors=tuple(self._all("tensors")),
            scalars=tuple(self._all("scalars")),
            stages=tuple(self._all("stages")),
            temporaries=tuple(self._all("temporaries")),
            derived=tuple(self._all("derived")),
            checks=tuple(self._all("checks")),
            gathers=tuple(self._all("gathers")),
            guards=tuple(self._all("guards")),
            computed=tuple(self._all("computed")),
        )

    def _all(self, what: str) -> list[Any]:
        return self.found.setdefault(what, [])

    def _split(self, line: _Line, word: str) -> tuple[str, str]:
        """Return the two fields of a line whose first begins with a word."""
        first, *rest = line.fields
        given, _, name = first.partition(" ")
        if given != word or len(rest) != 1 or not name.isidentifier():
            line.refuse(f"expected '{word} NAME | ...'")
        return name, line.string(rest[0])

    def _fact(self, block: Sequence[_Line]) -> None:
        line, *inner = block
        word, _, rest = line.fields[0].partition(" ")
        if inner and word != "stage":
            inner[0].refuse("unexpected indentation")
        match word:
            case "dims":
                self._declare(line, "dims", rest)
                self.lengths.update(self._all("dims"))
            case "guards" | "computed":
                self._declare(line, word, rest)
            case "read" | "update" | "write":
                self._all("tensors").append(TensorPlan(*self._typed(line, rest), word))
            case "temporary":
                self._all("temporaries").append(TemporaryPlan(*self._typed(line, rest)))
            case "scalar":
                name, _, element = rest.partition(" ")
                self._all("scalars").append(ScalarPlan(name, element))
            case "length":
                self._length(line, rest)
            case "range":
                self._range(line, rest)
            case "gather":
                self._gather(line, rest)
            case "let":
                self._let(line, rest)
            case "stage":
                self._stage(rest, inner)
            case _:
                line.refuse(f"unexpected '{word}'")

    def _declare(self, line: _Line, what: str, rest: str) -> None:
        names = rest.split(", ")
        parts = [part for name in names for part in name.split(".")]
        if not all(part.isidentifier() or part.isdecimal() for part in parts):
            line.refuse(f"expected names, got '{rest}'")
        self._all(what).extend(names)
        self.symbols.update(names)

    def _typed(self, line: _Line, rest: str) -> tuple[str, str, Axes]:
        declared = _DECLARED.fullmatch(rest)
        if declared is None or len(line.fields) > 1:
            line.refuse(f"expected 'NAME TYPE[AXES]', got '{rest}'")
        return declared[1], declared[2], self._axes(line, declared[3])

    def _axes(self, line: _Line, text: str) -> Axes:
        return tuple(self._axis(line, each) for each in text.split(", ") if text)

    def _axis(self, line: _Line, text: str) -> str | int:
        if text.isdecimal():
            return self._count(line, text)
        # Outputs are declared before the lengths that are computed for them.
        if not text.isidentifier():
            line.refuse(f"'{text}' is no axis")
        return text

    def _count(self, line: _Line, text: str) -> int:
        if not text.isdecimal() or int(text) > MOST:
            line.refuse(f"expected a whole number of at most 2^53, got '{text}'")
        return int(text)

    def _parse(
        self,
        line: _Line,
        text: str,
        read: Callable[[Parser], _Value],
        facts: frozenset[str] = frozenset(),
    ) -> _Value:
        try:
            return read(Parser(text, self.sizes, facts | self.symbols))
        except SizeSyntaxError as error:
            line.refuse(f"'{text}': {error}")

    def _size(self, line: _Line, text: str) -> Size:
        return self._parse(line, text, Parser.whole_size)

    def _length(self, line: _Line, name: str) -> None:
        if len(line.fields) != 3 or not name.isidentifier():
            line.refuse("expected 'length NAME | SIZE | \"TEXT\"'")
        _, value, text = line.fields
        dim = DerivedDim(name, line.string(text), self._size(line, value))
        self._all("derived").append(dim)
        self.lengths.add(name)
        self.symbols.add(name)

    def _checked(self, line: _Line, rest: str) -> tuple[str, int, str | int]:
        place = _CHECKED.fullmatch(rest)
        if place is None:
            line.refuse(f"expected '\"NAME\" AXIS LENGTH', got '{rest}'")
        name, axis, extent = place.groups()
        length = self._axis(line, extent)
        return line.string(name), self._count(line, axis), length

    def _around(self, line: _Line, text: str) -> Axes:
        around = _AROUND.fullmatch(text)
        if around is None:
            line.refuse(f"expected 'around [AXES]', got '{text}'")
        return self._axes(line, around[1])

    def _gather(self, line: _Line, rest: str) -> None:
        if len(line.fields) != 2:
            line.refuse("expected 'gather ... | around [AXES]'")
        tensor, axis, extent = self._checked(line, rest)
        around = self._around(line, line.fields[1])
        self._all("gathers").append(Gather(tensor, axis, extent, around))

    def _range(self, line: _Line, rest: str) -> None:
        tensor, axis, extent = self._checked(line, rest)
        if len(line.fields) < 3:
            line.refuse("expected 'range ... | \"TEXT\" | around [AXES] | ...'")
        _, text, around, *others = line.fields
        offset: Size = ZERO
        terms: list[Term] = []
        for each in others:
            if each == "guarded":
                continue
            if each.startswith("offset "):
                offset = self._size(line, each.removeprefix("offset "))
            elif term := _TERM.fullmatch(each):
                length = self._axis(line, term[1])
                terms.append(Term(self._size(line, term[2]), length))
            else:
                line.refuse(f"unexpected '{each}'")
        self._all("checks").append(
            RangeCheck(
                line.string(text),
                tensor,
                axis,
                extent,
                tuple(terms),
                self._around(line, around),
                offset,
                is_guarded="guarded" in others,
            )
        )

    def _let(self, line: _Line, rest: str) -> None:
        named = _LET.fullmatch(rest)
        if named is None or len(line.fields) > 1:
            line.refuse("expected 'let NAME = SIZE'")
        if named[1] in self.symbols or named[1] in self.sizes:
            line.refuse(f"'{named[1]}' has a meaning already")
        self.sizes[named[1]] = self._size(line, named[2])

    # Stages

    def _stage(self, name: str, inner: Sequence[_Line]) -> None:
        schedules = tuple(self._schedule(block) for block in _blocks(inner, 2))
        self._all("stages").append(Stage(name, schedules))

    def _schedule(self, block: Sequence[_Line]) -> Schedule:
        line, *inner = block
        name, *fields = line.fields
        facts: dict[str, Any] = {}
        for each in fields:
            word, _, rest = each.partition(" ")
            match word:
                case "when":
                    facts["when"] = self._parse(line, rest, Parser.whole_guard, _FACTS)
                case "bytes":
                    facts["workgroup_bytes"] = self._count(line, rest)
                case "invocations" | "covers":
                    facts[word] = self._count(line, rest)
                case "subgroups" if not rest:
                    facts[word] = True
                case _:
                    line.refuse(f"unexpected '{each}'")
        variants = tuple(self._variant(each) for each in _blocks(inner, 3))
        if not variants or variants[-1].when != ALWAYS:
            line.refuse("none of its variants takes every call")
        return Schedule(name, variants, **facts)

    def _variant(self, block: Sequence[_Line]) -> Variant:
        line, *inner = block
        name, *fields = line.fields
        when: Guard = ALWAYS
        scratch: list[Scratch] = []
        while fields and not fields[0].startswith("run "):
            each = fields.pop(0)
            if each.startswith("when "):
                text = each.removeprefix("when ")
                when = self._parse(line, text, Parser.whole_guard)
            elif item := _SCRATCH.fullmatch(each):
                scratch.append(Scratch(item[1], self._size(line, item[2])))
            else:
                line.refuse(f"unexpected '{each}'")
        dispatches = [self._dispatch(line, fields)]
        for other in inner:
            if other.depth != 4:
                other.refuse("unexpected indentation")
            dispatches.append(self._dispatch(other, list(other.fields)))
        shown = "" if name == NAMELESS else name
        return Variant(shown, tuple(dispatches), when, tuple(scratch))

    def _dispatch(self, line: _Line, fields: list[str]) -> Dispatch:
        run = _RUN.fullmatch(fields[0]) if fields else None
        if run is None:
            line.refuse("expected 'run SHADER(BINDINGS)'")
        sizes: dict[str, Size] = {}
        constants: tuple[tuple[str, int], ...] = ()
        uses_uniform = True
        for each in fields[1:]:
            word, _, rest = each.partition(" ")
            if each == "no uniform":
                uses_uniform = False
            elif word == "with" and not constants:
                constants = tuple(self._constants(line, rest))
            elif word in {"groups", "trips", "terms"} and word not in sizes:
                sizes[word] = self._size(line, rest)
            else:
                line.refuse(f"unexpected '{each}'")
        if "groups" not in sizes:
            line.refuse("expected 'groups SIZE'")
        bound = (each for each in run[2].split(", ") if each)
        bindings = tuple(Binding(b.removesuffix("*"), b.endswith("*")) for b in bound)
        return Dispatch(
            run[1], bindings, uses_uniform=uses_uniform, constants=constants, **sizes
        )

    def _constants(self, line: _Line, text: str) -> Iterator[tuple[str, int]]:
        for each in text.split(", "):
            given = _CONSTANT.fullmatch(each)
            if given is None:
                line.refuse(f"expected 'with NAME = NUMBER', got '{each}'")
            yield given[1], self._count(line, given[2])

    # What only the whole shows

    def _check_bindings(self, head: _Line) -> None:
        """Refuse names that nothing declares, and stages that are none."""
        scalars = {scalar.name for scalar in self._all("scalars")}
        for guard in self._all("guards"):
            if guard.split(".")[0] not in scalars:
                head.refuse(f"the guard '{guard}' is no scalar")
        tensors = [*self._all("tensors"), *self._all("temporaries")]
        axes = {axis for tensor in tensors for axis in tensor.axes}
        unknown = {a for a in axes if isinstance(a, str)} - self.lengths
        if unknown:
            head.refuse(f"'{min(unknown)}' is no dim of '{head.fields[0]}'")
        for names in ([t.name for t in tensors], self._all("dims"), sorted(scalars)):
            if len(set(names)) < len(names):
                head.refuse(f"one of {', '.join(names)} is declared twice")
        checks = [*self._all("checks"), *self._all("gathers")]
        for check in checks:
            lengths = {check.extent, *check.around}
            lengths |= {term.extent for term in getattr(check, "terms", ())}
            strange = {x for x in lengths if isinstance(x, str)} - self.lengths
            if strange:
                head.refuse(f"a check reads '{min(strange)}', which is no dim")
        known = {tensor.name for tensor in tensors}
        stages: list[Stage] = self._all("stages")
        for number, stage in enumerate(stages):
            for schedule in stage.schedules:
                if not 1 <= schedule.covers <= len(stages) - number:
                    head.refuse(f"'{stage.name}' covers {schedule.covers} stages")
                for variant in schedule.variants:
                    own = known | {item.name for item in variant.scratch}
                    bound = {b.name for d in variant.dispatches for b in d.bindings}
                    if bound - own:
                        head.refuse(f"'{min(bound - own)}' is bound, and is no tensor")
