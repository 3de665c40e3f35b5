"""Plans of kernels in JavaScript: data that the runtime walks, with functions for sizes.

    { stages: ["y"], cases: [{ when: (d) => d.n % 4n === 0n, body: [...] }] }

A dispatch is a tuple, as a module has hundreds: the shader, its bindings with a '*' behind
those that it writes, and its number of workgroups: `["softmax.rows", "x y*", (d) => d.m]`.
Empty entries are left out.  `web/src/plan.ts` has the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never, final

from kerngen.plan import tree
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    ZERO,
    Guard,
    Operand,
    Size,
    Symbol,
    all_of,
    any_of,
    compare,
    negate,
    symbols,
)
from kerngen.plan.text import SizePrinter, Words, sides_of, to_text
from kerngen.plan.write import named_sizes, taken_names
from kerngen.typescript.names import js_string


@final
@dataclass(frozen=True, slots=True)
class Additions:
    """The additions of a module to a kernel's plan.

    - `structs`: the classes of structs in the module, by their names in the plan
    - `fields`: the names of outputs in results, where they differ from the plan's
    - `initial`: the default values of scalars, as JavaScript
    - `computed`: the host's expressions, as JavaScript, by their symbols in the plan
    - `halves`: the values that contain f16, each with words for an error
    - `parts`: further entries of the plan, as JavaScript
    """

    structs: Mapping[str, str] = field(default_factory=dict[str, str])
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    initial: Mapping[str, str] = field(default_factory=dict[str, str])
    computed: Mapping[str, str] = field(default_factory=dict[str, str])
    halves: Sequence[tuple[str, str]] = ()
    parts: Mapping[str, str] = field(default_factory=dict[str, str])


def plan_function(plan: tree.KernelPlan, module: Additions, indent: int = 0) -> str:
    """Return a function that makes a kernel's plan, so that it is made at the first call.

    Sizes that occur several times become functions before it:

        () => {
          const s1 = (d) => $host.ceilDiv(d.n, 4096n);
          return { dims: ["m", "n"], ..., body: [[..., (d) => d.m * s1(d)]] };
        }
    """
    printer, lets = SizePrinter(words=JAVASCRIPT), list[str]()
    for size, name in named_sizes(tree.sizes_in(plan.body), taken_names(plan)).items():
        lets.append(f"const {name} = {as_function(size, printer)};")
        printer = replace(printer, names={**printer.names, size: f"{name}(d)"})
    entries = dict(_Plan(module, printer).entries(plan))
    if not lets:
        return f"() => ({js_literal(entries, indent)})"
    margin = " " * indent
    body = [*lets, f"return {js_literal(entries, indent + 2)};"]
    return "\n".join(["() => {", *(f"{margin}  {x}" for x in body), f"{margin}}}"])


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """Prints the entries of one plan."""

    module: Additions
    printer: SizePrinter

    def entries(self, plan: tree.KernelPlan) -> Iterator[tuple[str, Literal]]:
        """Yield the entries, without those that are empty."""
        is_zero = _is_zero(plan)
        lists: dict[str, Sequence[Literal]] = {
            "dims": plan.dims,
            "inputs": [self._tensor(x) for x in plan.tensors if x.access != "write"],
            "outputs": [self._tensor(x) for x in plan.tensors if x.access == "write"],
            "temporaries": [*map(self._tensor, plan.temporaries)],
            "scalars": [*map(self._scalar, plan.scalars)],
            "guards": plan.guards,
            "computed": [[n, JsCode(self.module.computed[n])] for n in plan.computed],
            "requires": [*map(self._require, plan.requires)],
            "lengths": [[x.name, x.text, self._size(x.value)] for x in plan.derived],
            "ranges": [dict(self._range(each)) for each in plan.checks],
            "gathers": [self._gather(each, is_zero) for each in plan.gathers],
            "halves": self.module.halves,
        }
        yield "origin", plan.origin
        if is_zero not in (ALWAYS, NEVER):
            yield "zero", self._size(is_zero)
        yield from ((name, each) for name, each in lists.items() if each)
        yield from ((name, JsCode(text)) for name, text in self.module.parts.items())
        yield "body", [*map(self._step, plan.body)]

    def _size(self, size: Size | Guard) -> JsCode:
        return JsCode(as_function(size, self.printer))

    def _element(self, name: str) -> Literal:
        own = self.module.structs.get(name)
        return JsCode(own) if own else name

    def _tensor(self, tensor: tree.TensorPlan | tree.TemporaryPlan) -> Literal:
        fields = self.module.fields
        return {
            "name": tensor.name,
            "element": self._element(tensor.element),
            "axes": tensor.axes,
            "access": (
                tensor.access if isinstance(tensor, tree.TensorPlan) else "temporary"
            ),
            **({"field": fields[tensor.name]} if tensor.name in fields else {}),
        }

    def _scalar(self, scalar: tree.ScalarPlan) -> Literal:
        initial = self.module.initial.get(scalar.name)
        rest = [JsCode(initial)] if initial else []
        return [scalar.name, self._element(scalar.element), *rest]

    def _require(self, each: tree.Requirement) -> Literal:
        sides = sides_of(each.condition)
        return {
            "text": each.text,
            "holds": self._size(each.condition),
            "reads": [*dict.fromkeys(symbols(each.condition))],
            "sides": [[to_text(side), self._size(side)] for side in sides],
        }

    def _range(self, check: tree.RangeCheck) -> Iterator[tuple[str, Literal]]:
        yield from _check(check).items()
        yield "text", check.text
        runs = _runs(check)
        if runs != ALWAYS:
            yield "runs", self._size(runs)
        if check.is_guarded:
            yield "guarded", True
        if check.offset != ZERO:
            yield "offset", self._size(check.offset)
        yield "terms", [[x.extent, self._size(x.coefficient)] for x in check.terms]

    def _gather(self, check: tree.Gather, is_zero: Guard) -> Literal:
        empty = all_of(_is_empty(check.extent), _runs(check), negate(is_zero))
        return {**_check(check), "empty": self._size(empty)}

    def _step(self, step: tree.Step) -> Literal:
        match step:
            case tree.Dispatch():
                return self._dispatch(step)
            case tree.Choice(cases, stages):
                shown = [dict(self._case(each)) for each in cases]
                return {**({"stages": stages} if stages else {}), "cases": shown}
            case tree.Repeat(count, body):
                return {"count": self._size(count), "body": [*map(self._step, body)]}
            case _:
                assert_never(step)

    def _case(self, case: tree.Case) -> Iterator[tuple[str, Literal]]:
        if case.when != ALWAYS:
            yield "when", self._size(case.when)
        if case.needs.workgroup_bytes:
            yield "bytes", case.needs.workgroup_bytes
        if case.needs.invocations:
            yield "invocations", case.needs.invocations
        if case.needs.subgroups:
            yield "subgroups", True
        if case.scratch:
            yield "scratch", [[x.name, self._size(x.length)] for x in case.scratch]
        yield "body", [*map(self._step, case.body)]

    def _dispatch(self, dispatch: tree.Dispatch) -> Literal:
        bound = (f"{x.name}*" if x.writes else x.name for x in dispatch.bindings)
        more: dict[str, Literal] = {}
        if dispatch.trips != ZERO:
            more["trips"] = self._size(dispatch.trips)
        if dispatch.terms != ZERO:
            more["terms"] = self._size(dispatch.terms)
        if dispatch.constants:
            more["constants"] = dict(dispatch.constants)
        if not dispatch.uses_uniform:
            more["uniform"] = False
        groups = self._size(dispatch.groups)
        return [dispatch.wgsl, " ".join(bound), groups, *([more] if more else [])]


def _is_zero(plan: tree.KernelPlan) -> Guard:
    """Return the condition under which a gradient is 0: all gradients by outputs are empty.

    It is needed only if the kernel also gathers, as nothing is read then.
    """
    axes = {each.name: each.axes for each in plan.tensors}
    pairs = plan.gradient.from_ if plan.gradient and plan.gathers else ()
    return (
        all_of(*(any_of(*map(_is_empty, axes[own])) for _, own in pairs))
        if pairs
        else NEVER
    )


def _runs(check: tree.RangeCheck | tree.Gather) -> Guard:
    """Return the condition under which anything is read: no axis around it is empty."""
    return all_of(*(compare("!=", _length(axis), 0) for axis in check.around))


def _is_empty(axis: str | int) -> Guard:
    return compare("==", _length(axis), 0)


def _length(axis: str | int) -> Operand:
    return axis if isinstance(axis, int) else Symbol(axis)


def _check(check: tree.RangeCheck | tree.Gather) -> dict[str, Literal]:
    return {"tensor": check.tensor, "axis": check.axis, "extent": check.extent}


# Sizes and conditions of plans in JavaScript, over `d`, which has BigInts by name.
#
#     m * ceil_div(n, 4096)   becomes   d.m * $host.ceilDiv(d.n, 4096n)
#     n % 4 == 0              becomes   d.n % 4n === 0n
#
# BigInts are exact, as Python's integers.  JavaScript raises where one is divided by zero, and
# WGSL defines the result, which `$host.div` and `$host.rem` return.


JAVASCRIPT: Final = Words(
    both=" && ",
    either=" || ",
    negation="!({})",
    comparisons={"==": "===", "!=": "!=="},
    literal="{}n",
    negative="({}n)",
    name="d.{}",
    part='d["{}"]',
    select="({} ? {} : {})",
    calls={
        "/": "$host.div({})",
        "%": "$host.rem({})",
        "abs": "$host.abs({})",
        "ceil_div": "$host.ceilDiv({})",
        "floor_div": "$host.floorDiv({})",
        "max": "$host.max({})",
        "min": "$host.min({})",
        "mod": "$host.mod({})",
        "shift_left": "$host.shiftLeft({})",
        "shift_right": "$host.shiftRight({})",
        "wrap_i32": "BigInt.asIntN(32, {})",
        "wrap_u32": "BigInt.asUintN(32, {})",
    },
    operators={"bit_and": " & ", "bit_or": " | ", "bit_xor": " ^ "},
)


def as_function(part: Size | Guard, printer: SizePrinter) -> str:
    """Return a size or a condition as a function of `d`: `(d) => d.m`, or its name."""
    if isinstance(part, Guard):
        return f"(d) => {printer.guard(part)}"
    text = printer.size(part)
    return text.removesuffix("(d)") if part in printer.names else f"(d) => {text}"


# Values as JavaScript's literals, each on one line if it is short.
#
# {"name": "x", "axes": ["m", 4]}   becomes   { name: "x", axes: ["m", 4] }


_WIDTH: Final = 100
"""The longest line of a value that is printed on one line."""


@final
@dataclass(frozen=True, slots=True)
class JsCode:
    """A text of JavaScript, printed as it is."""

    text: str


Literal: TypeAlias = (
    "str | int | float | JsCode | Sequence[Literal] | Mapping[str, Literal]"
)


def js_literal(value: Literal, indent: int = 0, before: int = 0) -> str:
    """Return a value as JavaScript: on one line where that fits, else an entry on each.

    It follows `before` characters, such as a key, on a line with an indent.
    """
    short = _short(value)
    if indent + before + len(short) <= _WIDTH or isinstance(
        value, str | int | float | JsCode
    ):
        return short
    inner = indent + 2
    if isinstance(value, Mapping):
        begin, end = "{}"
        items = [f"{k}: {js_literal(v, inner, len(k) + 2)}" for k, v in value.items()]
    else:
        begin, end = "[]"
        items = [js_literal(each, inner) for each in value]
    lines = (f"{' ' * inner}{item}," for item in items)
    return "\n".join([begin, *lines, f"{' ' * indent}{end}"])


def _short(value: Literal) -> str:
    """Return a value on one line."""
    match value:
        case JsCode(text):
            return text
        case bool():
            return "true" if value else "false"
        case str():
            return js_string(value)
        case int() | float():
            return repr(value)
        case Mapping():
            items = [f"{key}: {_short(each)}" for key, each in value.items()]
            return f"{{ {', '.join(items)} }}" if items else "{}"
        case _:
            return f"[{', '.join(map(_short, value))}]"
