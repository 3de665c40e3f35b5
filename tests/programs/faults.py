"""Faults to plant in the compiler, so that the tests can prove that they would see them.

A fault is a change of one function's own text; it is planted in the code object, so
that every module that has imported the function runs the faulty one.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from types import FunctionType
from typing import Any, Final


@dataclass(frozen=True)
class PlantedFault:
    """What goes wrong, where, and the text that is exchanged for another."""

    name: str
    where: str
    """The module and the function in it: `kerngen.ir.fold:fold`."""
    right: str
    wrong: str

    def __str__(self) -> str:
        """The name, as tests show it."""
        return self.name

    @contextmanager
    def planted(self) -> Generator[None]:
        """Run the faulty function for as long as the block."""
        function = self._function()
        sound = function.__code__
        function.__code__ = self._faulty(function)
        try:
            yield
        finally:
            function.__code__ = sound

    def _function(self) -> FunctionType:
        module, _, path = self.where.partition(":")
        found: Any = reduce(getattr, path.split("."), import_module(module))
        assert isinstance(found, FunctionType), self.where
        return found

    def _faulty(self, function: FunctionType) -> Any:
        text = textwrap.dedent(inspect.getsource(function))
        assert text.count(self.right) == 1, f"{self.where} has changed: {self.right}"
        scope = dict(function.__globals__)
        faulty = compile(
            "from __future__ import annotations\n"
            + text.replace(self.right, self.wrong),
            f"<{self.name}>",
            "exec",
        )
        exec(faulty, scope)
        return scope[function.__name__].__code__


FAULTS: Final = (
    PlantedFault(
        "a dropped tail",
        "kerngen.schedule.per_element:_vector_variant",
        "when = divides(LANES, domain_size(task.domain))",
        "when = divides(1, domain_size(task.domain))",
    ),
    PlantedFault(
        "a wrong stride",
        "kerngen.schedule.lowering.addresses:row_major",
        "zip(extents, at, strict=True)",
        "zip(extents[::-1], at, strict=True)",
    ),
    PlantedFault(
        "a swapped operand",
        "kerngen.schedule.lowering.expressions:Lowerer._binary",
        "return Value(t.Binary(op, a, b), wide)",
        'return Value(t.Binary(op, *((b, a) if op == "-" else (a, b))), wide)',
    ),
    PlantedFault(
        "a missing barrier",
        "kerngen.schedule.reduce.columnwise:Slices.join",
        "[t.Assign(partial[lane], total), t.BARRIER, loop]",
        "[t.Assign(partial[lane], total), loop]",
    ),
    PlantedFault(
        "a stale let",
        "kerngen.ir.staging.inlining:_Inliner._may_inline",
        "not any(self._written(t, number, last_use) for t in inlined.reads)",
        "number is not None",
    ),
    PlantedFault(
        "an unclamped gather",
        "kerngen.schedule.lowering.subscripts:_clamped",
        't.call("clamp", *clamped)',
        "clamped[0]",
    ),
    PlantedFault(
        "a guard that is off by one",
        "kerngen.schedule.lowering.positions:start_invocation",
        "t.If(element >= total,",
        "t.If(element >= total - 1,",
    ),
    PlantedFault(
        "a last element that is left out",
        "kerngen.schedule.coarse:coarse_shader",
        "t.If(element < total,",
        "t.If(element < total - 1,",
    ),
    PlantedFault(
        "a maximum that starts too high",
        "kerngen.schedule.lowering.identities:identity",
        "_START[kind, scalar])",
        '_START["min" if kind == "max" else kind, scalar])',
    ),
    PlantedFault(
        "a lost remainder",
        "kerngen.schedule.lowering.positions:places",
        "position % extent if number else position",
        "position",
    ),
    PlantedFault(
        "signed numbers compared as unsigned",
        "kerngen.schedule.lowering.expressions:Lowerer._binary",
        "    op = _LOGICAL[expr.op][wide]",
        '    if expr.op == "<" and expr.left.type is Scalar.I32:\n'
        "        unsigned = wgsl_type(Scalar.U32, LANES if wide else 1)\n"
        "        a, b = t.call(unsigned, a), t.call(unsigned, b)\n"
        "    op = _LOGICAL[expr.op][wide]",
    ),
    PlantedFault(
        "no snapshot of what a statement reads elsewhere",
        "kerngen.ir.staging.hoisting:_split",
        "if statement.along or not clashes(statement):",
        "if statement:",
    ),
    PlantedFault(
        "a lost transpose in the reference",
        "kerngen.emit.reference.axes:_permute",
        "if order == sorted(order):",
        "if order:",
    ),
    PlantedFault(
        "a wrong broadcast in the reference",
        "kerngen.emit.reference.load:_view",
        'parts += ["None"] * len(rest)',
        "parts += []",
    ),
    PlantedFault(
        "a wrong field of the uniform struct",
        "kerngen.schedule.lowering.builder:ShaderBuilder.uniform",
        "self._members[field]",
        "self._members[min(self._members)]",
    ),
    PlantedFault(
        "a variant for sizes that it does not suit",
        "kerngen.schedule.sizes:all_divisible",
        "divides(by, ",
        "divides(max(by // 2, 1), ",
    ),
    PlantedFault(
        "a reduction over the wrong index",
        "kerngen.schedule.lowering.ranges:terms_along",
        "to.shader.extent(index.extent)",
        "to.shader.extent(reduce.indices[0].extent)",
    ),
    PlantedFault(
        "a tile that is not cut at the edge",
        "kerngen.schedule.gemm.unit:Unit.clear",
        "kept = self._over < count",
        "kept = self._over < count + 1",
    ),
    PlantedFault(
        "a dropped part of a total",
        "kerngen.schedule.reduce.parts:_finish_shader",
        "start=shader.lane,",
        "start=shader.lane + 1,",
    ),
    PlantedFault(
        "shift counts cut to four bits in the reference",
        "kerngen.runtime.reference:_count",
        "np.bitwise_and(np.asarray(count), 31)",
        "np.bitwise_and(np.asarray(count), 15)",
    ),
    PlantedFault(
        "a conversion that does not saturate in the reference",
        "kerngen.runtime.reference:_integer",
        "np.clip(numbers, lowest, highest)",
        "np.abs(numbers)",
    ),
    PlantedFault(
        "swapped dims in the reference",
        "kerngen.emit.reference.body:_write_dims",
        'else f"{name}.shape"',
        'else f"{name}.shape[::-1]"',
    ),
    PlantedFault(
        "constants folded the wrong way round",
        "kerngen.ir.builtins.evaluate:binary",
        "integer_op(op, int(left), int(right))",
        "integer_op(op, int(right), int(left))",
    ),
    PlantedFault(
        "swapped branches",
        "kerngen.schedule.lowering.expressions:Lowerer._select",
        't.call("select", otherwise.expr, then.expr, condition.expr)',
        't.call("select", then.expr, otherwise.expr, condition.expr)',
    ),
    PlantedFault(
        "an affine subscript with a lost sign",
        "kerngen.schedule.lowering.subscripts:lower_affine",
        "total = total - term",
        "total = total + term",
    ),
    PlantedFault(
        "slices of a column that all begin at the top",
        "kerngen.schedule.reduce.columnwise:_own_terms",
        "+ (part * slices.count * at_once + slices.own)",
        "+ part * slices.count * at_once",
    ),
    PlantedFault(
        "vectors of a row that overlap",
        "kerngen.schedule.gemv.rowwise_block:Rowwise._accumulate",
        "start = self._along * self.width",
        "start = self._along",
    ),
    PlantedFault(
        "indices of an inlined let in the wrong order",
        "kerngen.ir.staging.inlining:_renaming",
        "zip(let.indices, indices, strict=True)",
        "zip(let.indices, indices[::-1], strict=True)",
    ),
    PlantedFault(
        "a compound assignment by the wrong operator",
        "kerngen.check.statements.body:Body._value",
        "Binary(_OPERATORS[node.op], place.value()",
        'Binary(_OPERATORS["+="], place.value()',
    ),
    PlantedFault(
        "stages joined although one reads the other's neighbours",
        "kerngen.ir.staging.grouping:_Joined.refusal",
        "if met:",
        "if not met and met:",
    ),
    PlantedFault(
        "a lost part of what the lanes of a row join",
        "kerngen.schedule.lowering.joining:Joiner._tree",
        "shader.lane + number * count]",
        "shader.lane + number % 3 * count]",
    ),
    PlantedFault(
        "a long row of which every other part is skipped",
        "kerngen.schedule.rows.shader:RowWriter._write_elements",
        "shape.step * shape.taken",
        "2 * shape.step * shape.taken",
    ),
    PlantedFault(
        "a subscript one beyond its axis",
        "kerngen.runtime.calls.ranges:check_ranges",
        "greatest >= length",
        "greatest > length",
    ),
    PlantedFault(
        "stages that are skipped behind one that runs alone",
        "kerngen.plan.select:_Selector.steps",
        "self._choice(step, origin, scratch)",
        "step.stages and origin.stage or self._choice(step, origin, scratch)",
    ),
    PlantedFault(
        "padding behind a member that the shader leaves out",
        "kerngen.shader.structs:StructDeclarations._member",
        "size=field.span if field.padding else None",
        "size=None",
    ),
    PlantedFault(
        "components of a vector in the wrong order",
        "kerngen.schedule.lowering.expressions:Lowerer.lower",
        "self.lower(operand).expr, components)",
        "self.lower(operand).expr, components[::-1])",
    ),
    PlantedFault(
        "members taken to be apart that are one",
        "kerngen.ir.analysis.reads:are_apart",
        "case ir.Field(name), ir.Field(other_name) if name != other_name:",
        "case ir.Field(), ir.Field():",
    ),
    PlantedFault(
        "a product with a matrix by its rows in the reference",
        "kerngen.runtime.geometry:matrix_by_vector",
        "np.matmul(v[..., None, :], m)[..., 0, :]",
        "np.matmul(m, v[..., None])[..., 0]",
    ),
    PlantedFault(
        "a condition that keeps what it should leave out",
        "kerngen.ir.analysis.conditions:unconditional",
        "condition.operand, otherwise, then",
        "condition.operand, then, otherwise",
    ),
    PlantedFault(
        "a prefix that is a term too long",
        "kerngen.runtime.reference:prefixes",
        "shift + 1",
        "shift + 2",
    ),
    PlantedFault(
        "a key that counts where it is no place",
        "kerngen.runtime.reference:_by_keys",
        "inside &= (place >= 0) & (place < length)",
        "inside &= place < length",
    ),
    PlantedFault(
        "an array in a struct of which only the first element is read",
        "kerngen.schedule.lowering.memory:follow",
        "element(place, laid, lower_at(to, step))",
        "element(place, laid, 0)",
    ),
    PlantedFault(
        "a component that is written to another's place",
        "kerngen.schedule.lowering.steps:_write_part",
        "place.member(step.component)",
        'place.member("x")',
    ),
    PlantedFault(
        "a struct of which the last member is not copied",
        "kerngen.check.statements.targets:_values",
        "for member in members:",
        "for member in members[: max(len(members) - 1, 1)]:",
    ),
    PlantedFault(
        "an element of a fixed array that is written by another index",
        "kerngen.emit.reference.body:_part_written",
        'parts = [":"] * target.rank',
        'parts = [":"] * max(target.rank - 1, 0)',
    ),
)
"""Each must be found within 500 programs."""
