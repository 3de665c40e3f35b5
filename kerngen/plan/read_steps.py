"""Read the steps in a plan file: choices, their cases, and dispatches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from kerngen.plan import tree
from kerngen.plan.lines import NAMELESS, PlanLine, blocks
from kerngen.plan.scope import PlanNames
from kerngen.plan.size import ALWAYS, Guard, Size

# `scratch parts[m * s1]`, `TILE_K = 16` of `with TILE_K = 16`, and `run relu.map:edge(x, y*)`.
_SCRATCH: Final = re.compile(r"scratch (\w+)\[(.+)\]")
_CONSTANT: Final = re.compile(r"(\w+) = (\d+)")
_RUN: Final = re.compile(r"run ([\w.-]+(?::\w+)?)\((.*)\)")


STEPS: Final = ("run", "repeat", "stage", "use")
"""The first words of lines of steps; lines of cases begin with a name."""


@final
@dataclass(frozen=True, slots=True)
class StepReader:
    """Parses the steps of a kernel.

    They may bind the tensors of `scope`, and the scratch buffers of the cases around them,
    `scratch`.
    """

    scope: PlanNames
    scratch: frozenset[str] = frozenset()

    def steps(self, above: PlanLine, lines: Sequence[PlanLine]) -> tree.Sequence:
        """Parse the lines in another line, `above`, as a sequence of steps.

        Cases that follow each other, up to one without `when`, are a choice between shaders.
        """
        steps: list[tree.Step] = []
        cases: list[tree.Case] = []
        for line, inner in blocks(lines, above.depth + 1):
            word, _, rest = line.fields[0].partition(" ")
            if word in STEPS and cases:
                line.refuse("expected a case: the one above has a 'when'")
            if word == "stage":
                steps.append(self._stage(line, rest, inner))
            elif word == "run":
                if inner:
                    inner[0].refuse("unexpected indentation")
                steps.append(self._dispatch(line, line.fields))
            elif word == "repeat":
                steps.append(self._repeat(line, rest, inner))
            else:
                cases.append(self._case(line, inner))
                if tree.stages_of(cases[-1].body):
                    line.refuse("only a case of a stage has stages in it")
                if cases[-1].when == ALWAYS:
                    steps.append(tree.Choice(tuple(cases)))
                    cases.clear()
        if cases:
            above.refuse("none of its cases takes every call")
        return tuple(steps)

    def _stage(
        self, line: PlanLine, names: str, inner: Sequence[PlanLine]
    ) -> tree.Choice:
        """Return the choice that a line begins: `stage top, total`."""
        stages = tuple(names.split(", "))
        if not all(map(str.isidentifier, stages)) or len(line.fields) > 1:
            line.refuse("expected 'stage NAMES'")
        cases: list[tree.Case] = []
        for below, deeper in blocks(inner, line.depth + 1):
            cases.append(self._case(below, deeper))
            # A case with a name computes the first stages itself, one at least, and choices
            # in it compute the last ones; a case without a name has choices for all.
            left = tree.stages_of(cases[-1].body)
            within = stages[1:] if cases[-1].name else stages
            if (left or not cases[-1].name) and within[-len(left) :] != left:
                below.refuse(f"it has the stages {', '.join(left)} of {names}")
        if not cases or cases[-1].when != ALWAYS:
            line.refuse("none of its cases takes every call")
        return tree.Choice(tuple(cases), stages)

    def _repeat(
        self, line: PlanLine, count: str, inner: Sequence[PlanLine]
    ) -> tree.Repeat:
        """Return the repetition of the steps below a line: `repeat n - 1`."""
        if len(line.fields) > 1:
            line.refuse("expected 'repeat SIZE'")
        size = self.scope.size(line, count)
        body = [*self.steps(line, inner)]
        dispatches = tuple(step for step in body if isinstance(step, tree.Dispatch))
        if not body or len(dispatches) < len(body):
            line.refuse("expected lines that 'run' shaders in it")
        return tree.Repeat(size, dispatches)

    def _case(self, line: PlanLine, inner: Sequence[PlanLine]) -> tree.Case:
        """Return a case: its own fields, with a first dispatch in them, then lines below.

        edge | when n > 9 | bytes 1024 | scratch parts[m] | run f(x, parts*) | groups m
        """
        name, *fields = line.fields
        if name != NAMELESS and not name.isidentifier():
            line.refuse(f"unexpected '{name}'")
        when: Guard = ALWAYS
        needs: dict[str, Any] = {}
        scratch: list[tree.Scratch] = []
        while fields and not fields[0].startswith("run "):
            each = fields.pop(0)
            word, _, rest = each.partition(" ")
            match word:
                case "when":
                    when = self.scope.guard(line, rest)
                case "bytes":
                    needs["workgroup_bytes"] = self.scope.count(line, rest)
                case "invocations":
                    needs[word] = self.scope.count(line, rest)
                case "subgroups" if not rest:
                    needs[word] = True
                case "scratch":
                    scratch.append(self._scratch(line, each))
                case _:
                    line.refuse(f"unexpected '{each}'")
        # What the case runs may bind its scratch buffers, and those of cases around it.
        names = self.scratch.union(item.name for item in scratch)
        within = StepReader(self.scope, names)
        first = (within._dispatch(line, fields),) if fields else ()
        body = (*first, *within.steps(line, inner))
        if not body:
            line.refuse("nothing is run in it")
        shown = "" if name == NAMELESS else name
        return tree.Case(shown, body, when, tree.Needs(**needs), tuple(scratch))

    def _scratch(self, line: PlanLine, text: str) -> tree.Scratch:
        item = _SCRATCH.fullmatch(text)
        if item is None:
            line.refuse(f"expected 'scratch NAME[SIZE]', got '{text}'")
        if item[1] in self.scope.tensors | self.scratch:
            line.refuse(f"'{item[1]}' is declared twice")
        return tree.Scratch(item[1], self.scope.size(line, item[2]))

    def _dispatch(self, line: PlanLine, fields: Sequence[str]) -> tree.Dispatch:
        """Return a dispatch: `run softmax.rows(x, y*) | with LANES = 32 | groups m`."""
        run = _RUN.fullmatch(fields[0])
        if run is None:
            line.refuse(f"expected 'run SHADER(BINDINGS)', got '{fields[0]}'")
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
                sizes[word] = self.scope.size(line, rest)
            else:
                line.refuse(f"unexpected '{each}'")
        if "groups" not in sizes:
            line.refuse("expected 'groups SIZE'")
        bindings = tuple(self._bindings(line, run[2]))
        return tree.Dispatch(
            run[1], bindings, uses_uniform=uses_uniform, constants=constants, **sizes
        )

    def _constants(self, line: PlanLine, text: str) -> Iterator[tuple[str, int]]:
        names: set[str] = set()
        for each in text.split(", "):
            given = _CONSTANT.fullmatch(each)
            if given is None:
                line.refuse(f"expected 'with NAME = NUMBER', got '{each}'")
            self.scope.declare(line, names, [given[1]])
            yield given[1], self.scope.count(line, given[2])

    def _bindings(self, line: PlanLine, text: str) -> Iterator[tree.Binding]:
        """Yield the bindings `x, y*`, of which those with a `*` are written."""
        for each in text.split(", ") if text else ():
            name = each.removesuffix("*")
            if name not in self.scope.tensors | self.scratch:
                line.refuse(f"'{name}' is bound, and is no tensor")
            yield tree.Binding(name, writes=each.endswith("*"))
