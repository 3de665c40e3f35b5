"""Read the declarations in a plan file: tensors, scalars, lengths and checks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, final

from kerngen.plan import tree
from kerngen.plan.lines import PlanLine
from kerngen.plan.scope import PlanNames
from kerngen.plan.size import ZERO, Size

# The forms of declarations: `x f32[m, n]`, `"x" 0 n`, `around [m, n]`, `term n by 2`,
# `by x: dx`, and `s1 = n * 2`.
_DECLARED: Final = re.compile(r"(\w+) ([\w<>, ]+?)\[(.*)\]")
_CHECKED: Final = re.compile(r'("(?:[^"\\]|\\.)*") (\d+) (\w+)')
_AROUND: Final = re.compile(r"around \[(.*)\]")
_TERM: Final = re.compile(r"term (\w+) by (.+)")
_OF_GRADIENT: Final = re.compile(r"(argument|by|from|length) (\w+): (\w+)|given (\w+)")
_LET: Final = re.compile(r"(\w+) = (.+)")


@final
@dataclass(slots=True)
class FactReader:
    """Collects what the lines of a kernel declare; names are declared in `scope`, too."""

    scope: PlanNames
    dims: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    computed: list[str] = field(default_factory=list[str])
    tensors: list[tree.TensorPlan] = field(default_factory=list[tree.TensorPlan])
    temporaries: list[tree.TemporaryPlan] = field(
        default_factory=list[tree.TemporaryPlan]
    )
    scalars: list[tree.ScalarPlan] = field(default_factory=list[tree.ScalarPlan])
    derived: list[tree.DerivedDim] = field(default_factory=list[tree.DerivedDim])
    requires: list[tree.Requirement] = field(default_factory=list[tree.Requirement])
    checks: list[tree.RangeCheck] = field(default_factory=list[tree.RangeCheck])
    gathers: list[tree.Gather] = field(default_factory=list[tree.Gather])
    gradient: tree.GradientOf | None = None

    def read(self, line: PlanLine) -> None:
        """Parse a line, and add what it declares."""
        word, _, rest = line.fields[0].partition(" ")
        match word:
            case "dims":
                self.dims += self._names(line, rest)
                self.scope.declare(line, self.scope.lengths, self.dims)
            case "guards":
                self.guards += self._names(line, rest)
                for name in self.guards:
                    if name.split(".")[0] not in self.scope.scalars:
                        line.refuse(f"the guard '{name}' is no scalar")
            case "computed":
                self.computed += self._names(line, rest)
            case "read" | "update" | "write":
                self.tensors.append(tree.TensorPlan(*self._typed(line, rest), word))
            case "temporary":
                self.temporaries.append(tree.TemporaryPlan(*self._typed(line, rest)))
            case "scalar":
                self._scalar(line, rest)
            case "gradient":
                self._gradient(line, rest)
            case "require":
                self._require(line, rest)
            case "length":
                self._length(line, rest)
            case "range":
                self._range(line, rest)
            case "gather":
                self._gather(line, rest)
            case "let":
                self._let(line, rest)
            case _:
                line.refuse(f"unexpected '{word}'")

    def _names(self, line: PlanLine, rest: str) -> list[str]:
        """Return names that sizes may have from here on: `n, step, camera.width`."""
        names = rest.split(", ")
        parts = [part for name in names for part in name.split(".")]
        if not all(part.isidentifier() or part.isdecimal() for part in parts):
            line.refuse(f"expected names, got '{rest}'")
        self.scope.symbols.update(names)
        return names

    def _typed(self, line: PlanLine, rest: str) -> tuple[str, str, tree.Axes]:
        """Return name, element type and axes of a tensor: `x f32[m, n]`."""
        declared = _DECLARED.fullmatch(rest)
        if declared is None or len(line.fields) > 1:
            line.refuse(f"expected 'NAME TYPE[AXES]', got '{rest}'")
        name, element, axes = declared.groups()
        self.scope.declare(line, self.scope.tensors, [name])
        return name, element, self.scope.axes(line, axes)

    def _scalar(self, line: PlanLine, rest: str) -> None:
        name, _, element = rest.partition(" ")
        self.scope.declare(line, self.scope.scalars, [name])
        self.scalars.append(tree.ScalarPlan(name, element))

    def _length(self, line: PlanLine, name: str) -> None:
        """Add a computed length: `length n2 | n * 2 | "2 * n"`."""
        if len(line.fields) != 3 or not name.isidentifier():
            line.refuse("expected 'length NAME | SIZE | \"TEXT\"'")
        _, value, text = line.fields
        dim = tree.DerivedDim(name, line.string(text), self.scope.size(line, value))
        self.derived.append(dim)
        self.scope.lengths.add(name)
        self.scope.symbols.add(name)

    def _gradient(self, line: PlanLine, kernel: str) -> None:
        """Set the kernel's origin: `gradient softmax | by x: dx | from y: dy`."""
        found: dict[str, list[tuple[str, str]]] = {}
        for each in line.fields[1:]:
            part = _OF_GRADIENT.fullmatch(each)
            if part is None:
                line.refuse(f"unexpected '{each}'")
            word, of, own, given = part.groups()
            self._check_own(line, word or "given", own or given)
            found.setdefault(word or "given", []).append((of or given, own or given))
        if self.gradient or not kernel.isidentifier() or "by" not in found:
            line.refuse("expected one 'gradient KERNEL | by NAME: OUTPUT | ...'")
        self.gradient = tree.GradientOf(
            kernel,
            by=tuple(found["by"]),
            from_=tuple(found.get("from", ())),
            given=tuple(name for name, _ in found.get("given", ())),
            lengths=tuple(found.get("length", ())),
            arguments=tuple(found.get("argument", ())),
        )

    def _check_own(self, line: PlanLine, word: str, name: str) -> None:
        """Refuse a name unless it is an output, input or scalar, as `word` requires."""
        outputs = {each.name for each in self.tensors if each.access == "write"}
        match word:
            case "by":
                known = outputs
            case "length":
                known = self.scope.scalars
            case "argument":
                known = self.scope.scalars | self.scope.tensors - outputs
            case _:
                known = self.scope.tensors - outputs
        if name not in known:
            line.refuse(f"there is no '{name}' for '{word}'")

    def _require(self, line: PlanLine, rest: str) -> None:
        if len(line.fields) != 2:
            line.refuse("expected 'require CONDITION | \"TEXT\"'")
        condition = self.scope.guard(line, rest, facts=frozenset())
        self.requires.append(tree.Requirement(line.string(line.fields[1]), condition))

    def _checked(self, line: PlanLine, rest: str) -> tuple[str, int, str | int]:
        """Return the subject of a check: tensor, number of the axis, its length."""
        place = _CHECKED.fullmatch(rest)
        if place is None:
            line.refuse(f"expected '\"NAME\" AXIS LENGTH', got '{rest}'")
        name, axis, extent = place.groups()
        length = self.scope.axis(line, extent)
        return line.string(name), self.scope.count(line, axis), length

    def _around(self, line: PlanLine, text: str) -> tree.Axes:
        around = _AROUND.fullmatch(text)
        if around is None:
            line.refuse(f"expected 'around [AXES]', got '{text}'")
        return self.scope.axes(line, around[1])

    def _gather(self, line: PlanLine, rest: str) -> None:
        if len(line.fields) != 2:
            line.refuse("expected 'gather ... | around [AXES]'")
        tensor, axis, extent = self._checked(line, rest)
        around = self._around(line, line.fields[1])
        self.gathers.append(tree.Gather(tensor, axis, extent, around))

    def _range(self, line: PlanLine, rest: str) -> None:
        """Add a range check of a subscript.

        range "x" 0 n | "2 * i + 1" | around [m] | offset 1 | term m by 2
        """
        tensor, axis, extent = self._checked(line, rest)
        if len(line.fields) < 3:
            line.refuse("expected 'range ... | \"TEXT\" | around [AXES] | ...'")
        _, text, around, *others = line.fields
        offset: Size = ZERO
        terms: list[tree.AffineTerm] = []
        for each in others:
            if each == "guarded":
                continue
            if each.startswith("offset "):
                offset = self.scope.size(line, each.removeprefix("offset "))
            elif term := _TERM.fullmatch(each):
                length = self.scope.axis(line, term[1])
                terms.append(tree.AffineTerm(self.scope.size(line, term[2]), length))
            else:
                line.refuse(f"unexpected '{each}'")
        self.checks.append(
            tree.RangeCheck(
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

    def _let(self, line: PlanLine, rest: str) -> None:
        """Name a size: `let s1 = ceil_div(n, 256)`."""
        named = _LET.fullmatch(rest)
        if named is None or len(line.fields) > 1:
            line.refuse("expected 'let NAME = SIZE'")
        name, size = named.groups()
        if name in self.scope.symbols or name in self.scope.sizes:
            line.refuse(f"'{name}' has a meaning already")
        self.scope.sizes[name] = self.scope.size(line, size)
