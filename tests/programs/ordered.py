"""Random programs of what goes in an order, by a key or to a place.

Scans, reductions by key, `argmax` and recurrences, each of which reads those before it:

    let a[i, j] = max[p when p >= j] x[i, p];
    let b[q < 5] = argmax[i, ...];

`kerngen verify` runs them in every way, and holds them to what their text means in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, final

INPUTS: Final = "x: f32[m, n], u: f32[m, n], key: i32[m, n], row: u32[m], g: u32"
GROUPS: Final = "g"


@final
@dataclass
class Writer:
    """Writes the statements of one kernel."""

    drawn: Random
    lines: list[str] = field(default_factory=list[str])
    elements: list[str] = field(default_factory=lambda: ["x", "u"])
    """What has a number for each i and j."""
    groups: list[str] = field(default_factory=list[str])
    """What has a number for each q."""

    def name(self) -> str:
        """Return a name that is new."""
        return f"v{len(self.lines)}"

    def one(self, *of: str) -> str:
        """Return one of some texts."""
        return self.drawn.choice(of)

    def value(self, i: str, j: str) -> str:
        """Return a number at an element, of about 1."""
        read = f"{self.drawn.choice(self.elements)}[{i}, {j}]"
        return self.one(
            read,
            f"0.5 * {read}",
            f"abs({read} - 0.25)",
            f"(if key[{i}, {j}] > 1 {{ {read} }} else {{ 0.75 }})",
            f"min({read}, f32({j}) * 0.125)",
        )

    def guard(self, i: str, j: str) -> str:
        """Return a further condition on terms, or none."""
        return self.one(
            "",
            "",
            f" and x[{i}, {j}] < u[{i}, {j}]",
            f" and key[{i}, {j}] != 2",
            f" and ({i} + {j}) % 3 != 0",
        )

    def define(self, indices: str, value: str) -> str:
        """Write a let, and return its name."""
        name = self.name()
        self.lines.append(f"    let {name}[{indices}] = {value};")
        return name


def scan(w: Writer) -> None:
    """Prefixes or suffixes along one axis."""
    kind, op = w.one("sum", "max", "min"), w.one("<=", "<", ">=", ">")
    if w.drawn.random() < 0.5:
        text = f"{kind}[p when p {op} j{w.guard('i', 'p')}] ({w.value('i', 'p')})"
    else:
        text = f"{kind}[p when p {op} i{w.guard('p', 'j')}] ({w.value('p', 'j')})"
    name = w.define("i < m, j < n", text)
    w.elements.append(
        w.define("i < m, j < n", f"clamp(0.25 * {name}[i, j], -2.0, 2.0)")
    )


def scatter(w: Writer) -> None:
    """Reductions by a key of elements, or of rows."""
    kind, group = w.one("sum", "max", "min"), w.one(*w.groups, "")
    body = w.value("i", "j")
    if group:
        body = f"abs({body} - {group}[q])"
    condition = f"key[i, j] == q{w.guard('i', 'j')}"
    text = f"{kind}[i, j when {condition}] ({body})"
    name = w.define(f"q < {GROUPS}", text)
    w.groups.append(w.define(f"q < {GROUPS}", f"clamp(0.25 * {name}[q], -2.0, 2.0)"))


def columns(w: Writer) -> None:
    """Rows that are summed by key; each element then reads its group."""
    kind = w.one("sum", "max")
    text = f"{kind}[i when row[i] == u32(q){w.guard('i', 'j')}] ({w.value('i', 'j')})"
    name = w.define(f"q < {GROUPS}, j < n", text)
    own = f"clamp(0.25 * {name}[row[i], j], -2.0, 2.0)"
    w.elements.append(w.define("i < m, j < n", own))


def place(w: Writer) -> None:
    """The first of the greatest or least, of a row or by key, and what is read there."""
    kind, guard = w.one("argmax", "argmin"), w.guard("i", "j")
    if w.drawn.random() < 0.5:
        text = f"{kind}[j{guard.replace(' and', ' when', 1)}] ({w.value('i', 'j')})"
        name = w.define("i < m", text)
        w.elements.append(w.define("i < m, j < n", f"x[i, {name}[i]] - u[i, j]"))
        return
    text = f"{kind}[i when row[i] == u32(q)] ({w.value('i', '0')})"
    name = w.define(f"q < {GROUPS}", text)
    w.groups.append(w.define(f"q < {GROUPS}", f"0.5 * x[{name}[q], 0]"))


def idiom(w: Writer) -> None:
    """A maximum, and the least index that is equal to it."""
    kind, source, guard = w.one("max", "min"), w.one("x", "u"), w.guard("i", "j")
    top = w.define(
        "i < m", f"{kind}[j{guard.replace(' and', ' when', 1)}] {source}[i, j]"
    )
    name = w.define("i < m", f"min[j when {source}[i, j] == {top}[i]{guard}] j")
    w.elements.append(w.define("i < m, j < n", f"u[i, {name}[i]] * x[i, j]"))


def recurrence(w: Writer) -> None:
    """A step that reads its own element, or all of the one before."""
    along_rows, back = w.drawn.random() < 0.5, w.drawn.random() < 0.5
    t, length = ("i", "m") if along_rows else ("j", "n")
    by = w.drawn.choice((1, 1, 2))
    holds = f"{t} + {by} < {length}" if back else f"{t} >= {by}"
    name, before = w.name(), f"{t} {'+' if back else '-'} {by}"
    at = f"{before}, j" if along_rows else f"i, {before}"
    elsewhere = f"{before}, k" if along_rows else f"k, {before}"
    value, read = w.value("i", "j"), f"{name}[{at}]"
    step = w.one(
        f"0.5 * {read} + {value}",
        f"({value}) * {read} * 0.25 - u[i, j]",
        f"max({read} - 0.125, {value})",
        f"(if key[i, j] > 1 {{ 0.75 * {read} }} else {{ 0.0 }}) + {value}",
        f"sin({read}) + {value}",
        f"0.0625 * (sum[k < {'n' if along_rows else 'm'}] {name}[{elsewhere}]) + {value}",
        f"(max[k < {'n' if along_rows else 'm'}] {name}[{elsewhere}]) * 0.5 - {value}",
    )
    text = f"if {holds} {{ {step} }} else {{ {value} }}"
    w.elements.append(w.define("i < m, j < n", text))


FORMS: Final[tuple[Callable[[Writer], None], ...]] = (
    scan,
    scan,
    scatter,
    scatter,
    columns,
    place,
    place,
    idiom,
    recurrence,
    recurrence,
)


def ordered_program(seed: int) -> str:
    """Return a kernel, always the same one for a seed."""
    w = Writer(Random(seed))
    for _ in range(w.drawn.randint(1, 4)):
        w.drawn.choice(FORMS)(w)
    outputs, ends = ["y: f32[m, n]"], [f"    y[i, j] = {w.elements[-1]}[i, j];"]
    if w.groups:
        outputs.append(f"z: f32[{GROUPS}]")
        ends.append(f"    z[q] = {w.groups[-1]}[q];")
    body = "\n".join((*w.lines, *ends))
    unused = (
        "    let used[i < m, j < n] = x[i, j] + u[i, j] + f32(key[i, j]) + f32(row[i]);"
    )
    del unused
    return f"kernel f({INPUTS}) -> {', '.join(outputs)} {{\n{body}\n}}\n"
