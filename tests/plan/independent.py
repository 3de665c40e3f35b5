"""A second reader of plan files, written from their description alone.

It shares no code with `kerngen.plan`: Python evaluates the sizes, after a check that they
hold nothing but names, numbers and operators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

WORDS = re.compile(r"[A-Za-z_][\w.]*")
ALLOWED = re.compile(r"[\w\s.,()+\-*/%<>=!]*")


def truncating(a: int, b: int) -> int:
    return (
        a if b == 0 else int(math.copysign(abs(a) // abs(b), a) * math.copysign(1, b))
    )


class Exact(int):
    """An integer whose `/` and `%` are WGSL's; other operators keep the type."""

    def __truediv__(self, other: int) -> Exact:
        return Exact(truncating(self, other))

    def __mod__(self, other: int) -> Exact:
        return Exact(0 if other == 0 else self - truncating(self, other) * other)

    def __add__(self, other: int) -> Exact:
        return Exact(int(self) + int(other))

    def __sub__(self, other: int) -> Exact:
        return Exact(int(self) - int(other))

    def __mul__(self, other: int) -> Exact:
        return Exact(int(self) * int(other))


def ceil_div(a: int, b: int) -> Exact:
    return Exact((int(a) + int(b) - 1) // int(b))


def smaller(a: int, b: int) -> Exact:
    return Exact(min(int(a), int(b)))


def larger(a: int, b: int) -> Exact:
    return Exact(max(int(a), int(b)))


def select(condition: bool, a: int, b: int) -> int:
    return a if condition else b


FUNCTIONS: dict[str, Any] = {
    "ceil_div": ceil_div,
    "min": smaller,
    "max": larger,
    "select": select,
}


@dataclass
class Kernel:
    """The lines of one kernel: lengths, lets, its origin, and the tree of its steps."""

    lengths: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    lets: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    gradient: list[str] = field(default_factory=list[str])
    steps: list[Line] = field(default_factory=list["Line"])


@dataclass
class Line:
    """A line of fields, and the lines in it."""

    fields: list[str]
    inner: list[Line] = field(default_factory=list["Line"])


def value(text: str, names: Mapping[str, int]) -> Any:
    """Evaluate a size or a guard."""
    assert ALLOWED.fullmatch(text), text
    known = {n.replace(".", "_"): Exact(v) for n, v in names.items()}
    code = WORDS.sub(lambda match: match[0].replace(".", "_"), text)
    code = re.sub(r"\bif\(", "select(", code)
    return eval(code, {"__builtins__": {}, **FUNCTIONS}, known)


def used(line: str, forms: Mapping[str, tuple[list[str], list[str]]]) -> Iterator[str]:
    """Yield a line, or those of the form that it uses: texts replace its parameters."""
    margin = line[: len(line) - len(line.lstrip())]
    word, *arguments = line.strip().split(" | ")
    if not word.startswith("use "):
        yield line
        return
    parameters, lines = forms[word.removeprefix("use ")]
    pairs = zip(parameters, arguments, strict=True)
    values = {p: x if re.fullmatch(r"[\w.$]+", x) else f"({x})" for p, x in pairs}
    for each in lines:
        filled = re.sub(r"\$\w+", lambda found: values.get(found[0], found[0]), each)
        let = re.fullmatch(r"  let (\$\w+) = (.*)", filled)
        if let:
            values[let[1]] = f"({let[2]})"
        else:
            yield margin + filled[2:]


def without_forms(text: str) -> Iterator[str]:
    """Yield the lines of a plan file, with the lines of forms where they are used."""
    forms: dict[str, tuple[list[str], list[str]]] = {}
    for block in text.split("\n\n"):
        head, *lines = block.split("\n")
        inner = [each for line in lines for each in used(line, forms)]
        if head.startswith("form "):
            name, parameters = head.removeprefix("form ").split(" | ")
            forms[name] = parameters.split(", "), inner
        else:
            yield from (head, *inner)


def read(text: str) -> dict[str, Kernel]:
    """Return the kernels of a plan file by name."""
    kernels: dict[str, Kernel] = {}
    kernel = Kernel()
    above: list[list[Line]] = []
    for line in without_forms(text):
        depth = (len(line) - len(line.lstrip())) // 2
        fields = line.strip().split(" | ")
        word, _, rest = fields[0].partition(" ")
        if depth == 0 and word == "kernel":
            kernel = kernels[rest] = Kernel()
            above = [[], kernel.steps]
        elif depth == 1 and word == "length":
            kernel.lengths.append((rest, fields[1]))
        elif depth == 1 and word == "let":
            name, _, size = rest.partition(" = ")
            kernel.lets.append((name, size))
        elif depth == 1 and word == "gradient":
            kernel.gradient = [rest, *fields[1:]]
        elif depth > 1 or word in ("stage", "run"):
            step = Line(fields)
            above[depth].append(step)
            above[depth + 1 :] = [step.inner]
    return kernels


def _field(fields: list[str], word: str, default: str) -> str:
    found = (each.partition(" ")[2] for each in fields if each.startswith(f"{word} "))
    return next(found, default)


def lengths(kernel: Kernel, dims: Mapping[str, int]) -> dict[str, int]:
    """Return the lengths that are computed from dims and scalars."""
    names = dict(dims)
    for name, size in kernel.lengths:
        names[name] = int(value(size, names))
    return {name: names[name] for name, _ in kernel.lengths}


def choices(
    kernel: Kernel, dims: Mapping[str, int], adapter: Mapping[str, int]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return what runs, in order: stage, strategy, and shaders that have workgroups."""
    names = {**dims, **{f"adapter.{k}": int(v) for k, v in adapter.items()}}
    names |= lengths(kernel, dims)
    for name, size in kernel.lets:
        names[name] = value(size, names)
    chosen: list[tuple[str, str, list[str]]] = []

    def applies(case: Line) -> bool:
        return bool(
            int(_field(case.fields, "bytes", "0")) <= adapter["workgroup_bytes"]
            and int(_field(case.fields, "invocations", "0")) <= adapter["invocations"]
            and (adapter["subgroups"] or "subgroups" not in case.fields)
            and value(_field(case.fields, "when", "True"), names)
        )

    def run(steps: list[Line]) -> None:
        taken = False  # whether a case of the choice at hand was
        for step in steps:
            shader = _field(step.fields, "run", "").partition("(")[0]
            if step.fields[0].startswith("stage "):
                case = next(filter(applies, step.inner))
                first = step.fields[0].removeprefix("stage ").split(", ")[0]
                if case.fields[0] != "-":
                    chosen.append((first, case.fields[0], []))
                enter(case)
            elif step.fields[0].startswith("run "):
                note(shader, step)
            else:
                if not taken and applies(step):
                    taken = True
                    enter(step)
                taken = taken and bool(_field(step.fields, "when", ""))

    def enter(case: Line) -> None:
        shader = _field(case.fields, "run", "").partition("(")[0]
        if shader:
            note(shader, case)
        run(case.inner)

    def note(shader: str, line: Line) -> None:
        if value(_field(line.fields, "groups", ""), names) > 0:
            chosen[-1][2].append(shader)

    run(kernel.steps)
    return [(stage, strategy, tuple(shaders)) for stage, strategy, shaders in chosen]
