"""Random typed kernels, and data for them: small whole numbers, so that sums are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.ir.nodes import (
    Binary,
    BinaryOp,
    BuiltinCall,
    Cast,
    Constant,
    DimValue,
    Expr,
    Extent,
    Index,
    IndexValue,
    Kernel,
    Load,
    Parameter,
    Reduce,
    ReduceKind,
    Role,
    Select,
    Statement,
    Tensor,
    Unary,
    UnaryOp,
    UniformValue,
)
from kerngen.ir.types import VECTORS, Scalar
from kerngen.source.text import Source, Span

F32, I32, U32, BOOL = Scalar.F32, Scalar.I32, Scalar.U32, Scalar.BOOL
SPAN = Span(Source("random.kern", ""), 0, 0)


def given_tensor(name: str, element: Scalar, *extents: Extent) -> Tensor:
    return Tensor(name, element, extents, Role.INPUT)


INPUTS = (
    given_tensor("a", F32, "m", "k"),
    given_tensor("b", F32, "k", "n"),
    given_tensor("c", F32, "n"),
    given_tensor("d", F32, "m"),
    given_tensor("square", F32, "m", "m"),
    given_tensor("cube", F32, "n", "m", "k"),
    given_tensor("rgb", F32, "n", 3),
    given_tensor("s", F32),
    given_tensor("ids", I32, "k"),
    given_tensor("at", I32, "m", "n"),
    given_tensor("labels", U32, "m"),
)
CHANGED = Tensor("p", F32, ("m", "n"), Role.UPDATE)
TENSORS = (*INPUTS, CHANGED)
PARAMETERS = (
    Parameter("alpha", F32, 2.0),
    Parameter("step", I32, None),
    Parameter("origin", VECTORS["vec2f"], None),
)
EXTENTS: tuple[Extent, ...] = ("m", "n", "k", 3)


UNARY_OPS: dict[Scalar, tuple[UnaryOp, ...]] = {
    F32: ("-",),
    I32: ("-", "~"),
    U32: ("~",),
}
Choice = TypeVar("Choice")


@dataclass
class Maker:
    """Draws expressions; `scope` holds the indices that may be read."""

    draw: st.DrawFn
    tensors: tuple[Tensor, ...]
    serial: int = 0

    def pick(self, *choices: Choice) -> Choice:
        return self.draw(st.sampled_from(choices))

    def pick_expr(self, *choices: Expr) -> Expr:
        return self.draw(st.sampled_from(choices))

    def index(self, extent: Extent) -> Index:
        self.serial += 1
        return Index(
            f"i{self.serial}" if self.serial % 2 else f"x{self.serial}", extent
        )

    def make(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        leaves = {F32: self.float_leaf, I32: self.i32_leaf, U32: self.u32_leaf}
        if of is BOOL:
            return self.truth(scope, depth)
        if depth == 0:
            return leaves[of](scope)
        nodes: list[Callable[[Scalar, tuple[Index, ...], int], Expr]] = [
            lambda of, scope, _: leaves[of](scope),
            self.binary,
            self.binary,
            self.select,
            self.extreme,
            self.reduce,
            self.reduce,
            self.cast,
            self.unary,
        ]
        return self.pick(*nodes)(of, scope, depth - 1)

    # Leaves

    def float_leaf(self, scope: tuple[Index, ...]) -> Expr:
        loads = self.loads(F32, scope)
        constant = Constant(float(self.draw(st.integers(-2, 3))), F32)
        uniforms = UniformValue("alpha", F32), UniformValue("origin", F32, "y")
        return self.pick_expr(*loads, *loads, *loads, constant, *uniforms)

    def i32_leaf(self, scope: tuple[Index, ...]) -> Expr:
        values = [IndexValue(index) for index in scope]
        constant = Constant(self.draw(st.integers(-3, 7)), I32)
        others = (constant, DimValue("n"), UniformValue("step", I32))
        return self.pick_expr(*values, *self.loads(I32, scope), *others)

    def u32_leaf(self, scope: tuple[Index, ...]) -> Expr:
        constant = Constant(self.draw(st.integers(0, 2**32 - 1)), U32)
        return self.pick_expr(*self.loads(U32, scope), constant)

    def loads(self, of: Scalar, scope: tuple[Index, ...]) -> list[Expr]:
        """Return reads by bare indices, and a gather where none is possible."""
        found: list[Expr] = []
        for tensor in self.tensors:
            if tensor.element is not of:
                continue
            subscripts = [self.subscript(extent, scope) for extent in tensor.extents]
            found.append(Load(tensor, tuple(subscripts)))
        return found

    def subscript(self, extent: Extent, scope: tuple[Index, ...]) -> Expr:
        bare = [IndexValue(index) for index in scope if index.extent == extent]
        if bare:
            return self.pick_expr(*bare)
        gathers: list[Expr] = [Constant(self.draw(st.integers(-1, 4)), I32)]
        values = [IndexValue(index) for index in scope]
        ids = [t for t in self.tensors if t.name == "ids"]
        gathers += [Load(ids[0], (v,)) for v in values if v.index.extent == "k"]
        gathers += [Binary("-", v, Constant(1, I32), I32) for v in values]
        return self.pick_expr(*gathers)

    # Nodes

    def binary(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        of_floats: tuple[BinaryOp, ...] = ("+", "-", "*", "*")
        of_integers: tuple[BinaryOp, ...] = ("/", "%", "&", "|", "^", "<<", ">>")
        op: BinaryOp = self.pick(*of_floats, *(of_integers if of.is_integer else ()))
        right = U32 if op in ("<<", ">>") else of
        sides = self.make(of, scope, depth), self.make(right, scope, depth)
        return Binary(op, *sides, of)

    def select(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        branches = self.make(of, scope, depth), self.make(of, scope, depth)
        return Select(self.truth(scope, depth), *branches, of)

    def extreme(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        sides = self.make(of, scope, depth), self.make(of, scope, depth)
        return BuiltinCall(self.pick("max", "min"), sides, of)

    def reduce(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        kinds: tuple[ReduceKind, ...] = ("sum", "sum", "sum", "max", "min", "prod")
        extents = self.draw(st.lists(st.sampled_from(EXTENTS), min_size=1, max_size=2))
        indices = tuple(self.index(extent) for extent in extents)
        body = self.make(of, (*scope, *indices), depth)
        return Reduce(self.pick(*kinds), indices, body, of)

    def cast(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        sources = [s for s in (F32, I32, U32, BOOL) if s is not of]
        source = self.pick(*sources)
        return Cast(self.make(source, scope, depth), of)

    def unary(self, of: Scalar, scope: tuple[Index, ...], depth: int) -> Expr:
        op: UnaryOp = self.pick(*UNARY_OPS[of])
        return Unary(op, self.make(of, scope, depth), of)

    def truth(self, scope: tuple[Index, ...], depth: int) -> Expr:
        if depth > 0 and self.pick(True, False):
            sides = self.truth(scope, depth - 1), self.truth(scope, depth - 1)
            joined = Binary(self.pick("and", "or"), *sides, BOOL)
            return self.pick_expr(joined, Unary("not", joined, BOOL))
        of = self.pick(F32, I32, U32)
        inner = max(depth - 1, 0)
        sides = self.make(of, scope, inner), self.make(of, scope, inner)
        return Binary(self.pick("==", "!=", "<", "<=", ">", ">="), *sides, BOOL)


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """Draw a kernel of one to three statements."""
    maker = Maker(draw, TENSORS)
    body: list[Statement] = []
    outputs: list[Tensor] = []
    for number in range(draw(st.integers(1, 3))):
        role = draw(st.sampled_from((Role.OUTPUT, Role.LET, Role.UPDATE)))
        target = CHANGED
        if role is not Role.UPDATE:
            of = draw(st.sampled_from((F32, F32, I32, U32)))
            extents = draw(st.lists(st.sampled_from(EXTENTS), max_size=3))
            target = Tensor(f"y{number}", of, tuple(extents), role)
        indices = tuple(maker.index(extent) for extent in target.extents)
        value = maker.make(target.element, indices, draw(st.integers(0, 3)))
        body.append(Statement(target, indices, value, text=f"statement {number};"))
        if role is not Role.UPDATE:
            maker = replace(maker, tensors=(*maker.tensors, target))
        if role is Role.OUTPUT:
            outputs.append(target)
    tensors = (*TENSORS, *outputs)
    return Kernel(
        *("random", ("m", "k", "n"), tensors, PARAMETERS, (), tuple(body), (), ()),
        *("", "", SPAN),
    )


SCALARS = {"alpha": 2.0, "step": -3, "origin": (1.0, -2.0)}


def draw_arrays(sizes: Mapping[Extent, int], seed: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}
    for tensor in TENSORS:
        shape = [sizes[extent] for extent in tensor.extents]
        numbers = np.asarray(rng.integers(-2, 4, shape))
        if tensor.element is F32:
            arrays[tensor.name] = numbers.astype(np.float64)
        elif tensor.element is I32:
            arrays[tensor.name] = numbers.astype(np.int32)
        else:
            arrays[tensor.name] = numbers.astype(np.uint32)
    return arrays
