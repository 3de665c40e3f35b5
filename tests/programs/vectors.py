"""The grammar of vectors and matrices: one method per nonterminal, by type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .dice import Dice
from .memory import is_composite, is_matrix, parts_of, scalar_of, vector
from .parts import Parts, binds
from .pieces import Level, Piece, binary, call, conditional, reduction, unary
from .structs import MATRICES, VECTORS
from .world import Function, Index, Parameter, Place, Tensor, World, scalar_type

if TYPE_CHECKING:
    from .grammar import Grammar

ROUNDING = (
    *("sqrt(abs({0}))", "inverseSqrt(abs({0}) + 1.0)", "log(abs({0}) + 1.0)"),
    *("atan({0})", "tanh({0})", "log1p(abs({0}))", "fract({0} * 0.25)"),
    *("exp(clamp({0}, {1}(-4.0), {1}(4.0)))", "erf(clamp({0}, {1}(-5.0), {1}(5.0)))"),
    *("sin(clamp({0}, {1}(-3.0), {1}(3.0)))", "mix({0}, {2}, 0.25)"),
    "mix({0}, {2}, {1}(0.5))",
)
EXACT = ("abs", "floor", "ceil", "round", "trunc", "saturate", "sign")


@dataclass
class Vectors:
    """Draws expressions of vectors and matrices, and scalars made of them."""

    grammar: Grammar

    @property
    def world(self) -> World:
        """The program so far."""
        return self.grammar.world

    @property
    def dice(self) -> Dice:
        """Where choices come from."""
        return self.grammar.dice

    @property
    def parts(self) -> Parts:
        """Where parts are read."""
        return self.grammar.parts

    def any_type(self) -> str:
        """Draw a type."""
        return self.dice.pick(MATRICES if self.dice.chance(22) else VECTORS)

    def of(self, type_: str, place: Place) -> Piece:
        """Draw an expression."""
        if place.depth <= 0 or self.dice.chance(20):
            return self.leaf(type_, place)
        kinds: list[Callable[[str, Place], Piece]]
        if is_matrix(type_):
            kinds = [self.product, self.product, self.scaled, self.summed, self.made]
            kinds += [self.transposed, self.branch, self.called, self.negated]
        else:
            kinds = [self.componentwise, self.componentwise, self.scaled, self.made]
            kinds += [self.branch, self.called, self.exact, self.reduced, self.negated]
            kinds += [self.converted, self.exact]
            if scalar_of(type_) == "f32":
                kinds += [self.rounding, self.by_matrix, self.by_matrix, self.divided]
                kinds += [self.geometric, self.geometric, self.by_matrix]
            else:
                kinds += [self.whole, self.whole, self.shifted]
        return self.dice.pick(kinds)(type_, place)

    # Leaves

    def leaf(self, type_: str, place: Place) -> Piece:
        """A part of something, or a new value."""
        found = None
        if self.dice.chance(80) or self.world.crowded or place.locals is not None:
            found = self.parts.read(type_, place)
        if found is not None:
            return found
        if place.locals is not None or place.depth < -2:
            return self.made(type_, replace(place, depth=0))
        if self.world.crowded or self.dice.chance(30):
            return Piece(self.new_parameter(type_).name)
        axes = self.grammar.axes_near(place)
        return self.grammar.load(self.world.input(type_, axes), place)

    def new_parameter(self, type_: str) -> Parameter:
        """A vector or matrix in the uniform struct."""
        parameter = Parameter(self.world.name(), type_)
        self.world.parameters.append(parameter)
        return parameter

    # Made of parts

    def made(self, type_: str, place: Place) -> Piece:
        """A constructor: of scalars, of vectors and scalars, or of one for all."""
        typed = replace(place.inner, typed=True)
        inner = parts_of(type_)
        if is_matrix(type_):
            column = str(inner[0])
            if self.dice.chance(40) and len(inner) * len(parts_of(column)) <= 6:
                count = len(inner) * len(parts_of(column))
                small = replace(typed, depth=0)
                return call(type_, [self.scalar("f32", small) for _ in range(count)])
            return call(type_, [self.of(column, typed) for _ in inner])
        scalar = scalar_of(type_)
        width = len(inner)
        roll = self.dice.below(10)
        if roll < 3:
            return call(type_, [self.scalar(scalar, typed)])
        if roll < 6 and width > 2:
            pieces = [self.of(vector(scalar, 2), typed)]
            pieces += [
                self.scalar(scalar, replace(typed, depth=0)) for _ in range(width - 2)
            ]
            return call(type_, self.dice.several(pieces, len(pieces)))
        small = replace(typed, depth=min(typed.depth, 1))
        return call(type_, [self.scalar(scalar, small) for _ in inner])

    def scalar(self, scalar: str, place: Place) -> Piece:
        """A scalar, of any kind."""
        return self.grammar.of(scalar_type(scalar), place)

    def converted(self, type_: str, place: Place) -> Piece:
        """A conversion of each component."""
        others = [s for s in ("f32", "i32", "u32") if s != scalar_of(type_)]
        source = vector(self.dice.pick(others), len(parts_of(type_)))
        return call(type_, [self.of(source, place.inner)])

    # Operators

    def componentwise(self, type_: str, place: Place) -> Piece:
        """A sum, a difference or a product of components."""
        op = self.dice.pick("+-*")
        return binary(op, self.of(type_, place.inner), self.of(type_, place.inner))

    def summed(self, type_: str, place: Place) -> Piece:
        """A sum or difference of matrices."""
        sides = self.of(type_, place.inner), self.of(type_, place.inner)
        return binary(self.dice.pick("+-"), *sides)

    def scaled(self, type_: str, place: Place) -> Piece:
        """A scalar with each component; matrices are only multiplied so."""
        scalar = scalar_of(type_)
        op = "*" if is_matrix(type_) else self.dice.pick("**+-")
        sides = [
            self.of(type_, place.inner),
            self.scalar(scalar, replace(place.inner, typed=True, depth=1)),
        ]
        return binary(op, *self.dice.several(sides, 2))

    def divided(self, type_: str, place: Place) -> Piece:
        """A quotient by something that is not near 0."""
        left = self.of(type_, place.inner)
        if self.dice.chance(40):
            return binary("/", left, self.dice.pick((Piece("2.0"), Piece("3.0"))))
        right = call("abs", [self.of(type_, replace(place.inner, depth=0))])
        return binary("/", left, binary("+", right, Piece("1.0")))

    def whole(self, type_: str, place: Place) -> Piece:
        """An operation on integers."""
        sides = self.of(type_, place.inner), self.of(type_, place.inner)
        return binary(self.dice.pick("&|^/%"), *sides)

    def shifted(self, type_: str, place: Place) -> Piece:
        """A shift, by a count for each component."""
        counts = vector("u32", len(parts_of(type_)))
        sides = self.of(type_, place.inner), self.of(counts, replace(place, depth=0))
        return binary(self.dice.pick(("<<", ">>")), *sides)

    def negated(self, type_: str, place: Place) -> Piece:
        """A sign, or all bits turned."""
        op = {"f32": "-", "i32": "-", "u32": "~"}[scalar_of(type_)]
        return unary(op, self.of(type_, place.inner))

    def branch(self, type_: str, place: Place) -> Piece:
        """An `if`."""
        inside = replace(place.inner, branch=True)
        condition = self.grammar.truth(place.inner)
        return conditional(condition, self.of(type_, inside), self.of(type_, inside))

    # Products with matrices

    def by_matrix(self, type_: str, place: Place) -> Piece:
        """A matrix times a vector, or a vector times a matrix."""
        width, other = len(parts_of(type_)), self.dice.pick((3, 2, 4))
        small = replace(place.inner, depth=min(place.depth - 1, 1))
        by = self.of(vector("f32", other), small)
        if self.dice.chance(50):
            return binary("*", self.of(f"mat{other}x{width}f", small), by)
        return binary("*", by, self.of(f"mat{width}x{other}f", small))

    def product(self, type_: str, place: Place) -> Piece:
        """A product of two matrices."""
        columns, rows = type_[3], type_[5]
        other = self.dice.pick("324")
        small = replace(place.inner, depth=min(place.depth - 1, 1))
        left = self.of(f"mat{other}x{rows}f", small)
        return binary("*", left, self.of(f"mat{columns}x{other}f", small))

    def transposed(self, type_: str, place: Place) -> Piece:
        """Columns made rows."""
        turned = f"mat{type_[5]}x{type_[3]}f"
        return call("transpose", [self.of(turned, place.inner)])

    # Functions

    def exact(self, type_: str, place: Place) -> Piece:
        """A built-in that doesn't round."""
        first = self.of(type_, place.inner)
        scalar = scalar_of(type_)
        if scalar != "f32" and self.dice.chance(30):
            names = ("countOneBits", "reverseBits", "firstTrailingBit", "abs")
            return call(self.dice.pick(names), [first])
        if scalar != "u32" and self.dice.chance(40):
            signed = EXACT if scalar == "f32" else ("abs", "sign")
            return call(self.dice.pick(signed), [first])
        second = self.of(type_, place.inner)
        if self.dice.chance(45):
            return call("select", [first, second, self.grammar.truth(place.inner)])
        return call(self.dice.pick(("min", "max")), [first, second])

    def rounding(self, type_: str, place: Place) -> Piece:
        """A built-in that rounds, on each component."""
        form = self.dice.pick(ROUNDING)
        small = replace(place.inner, depth=min(place.depth - 1, 1))
        first = self.of(type_, small)
        text = first.at(Level.PRODUCT) if "{0} *" in form else first.text
        second = self.leaf(type_, small).text if "{2}" in form else ""
        return Piece(form.format(text, type_, second))

    def geometric(self, type_: str, place: Place) -> Piece:
        """A direction, a cross product or a mirrored vector."""
        small = replace(place.inner, depth=min(place.depth - 1, 1))
        name = self.dice.pick(("reflect", "faceForward", "normalize"))
        if type_ == "vec3f" and self.dice.chance(60):
            name = "cross"
        if name == "normalize":
            away = binary("+", call("abs", [self.of(type_, small)]), Piece("0.5"))
            return call("normalize", [away])
        count = 3 if name == "faceForward" else 2
        others = [self.leaf(type_, small) for _ in range(count - 1)]
        return call(name, [self.of(type_, small), *others])

    def measure(self, place: Place) -> Piece:
        """A real that is computed from vectors or a matrix."""
        small = replace(place.inner, depth=min(place.depth - 1, 1))
        roll = self.dice.below(10)
        width = self.dice.pick((3, 2, 4))
        type_ = vector("f32", width)
        if roll < 1:
            return call("dot", [self.of(type_, small), self.of(type_, small)])
        if roll < 4:
            return call("length", [self.of(type_, small)])
        if roll < 7:
            return call("distance", [self.of(type_, small), self.leaf(type_, small)])
        square = f"mat{width}x{width}f"
        return call("determinant", [self.of(square, small)])

    def dotted(self, scalar: str, place: Place) -> Piece:
        """A dot product of integers."""
        type_ = vector(scalar, self.dice.pick((2, 3, 4)))
        small = replace(place.inner, depth=min(place.depth - 1, 1))
        return call("dot", [self.of(type_, small), self.leaf(type_, small)])

    def called(self, type_: str, place: Place) -> Piece:
        """A function of the file with vectors or matrices."""
        if place.locals is not None:
            return self.made(type_, place)
        known = [f for f in self.world.functions if f.result == type_]
        if known and (len(self.world.functions) > 3 or self.dice.chance(50)):
            function = self.dice.pick(known)
        else:
            function = self.new_function(type_)
        typed = replace(place.inner, typed=True)
        return call(function.name, [self.any_of(t, typed) for t in function.parameters])

    def any_of(self, type_: str, place: Place) -> Piece:
        """An expression of any type."""
        if is_composite(type_):
            return self.of(type_, place)
        return self.scalar(type_, place)

    def new_function(self, type_: str) -> Function:
        """A function of a vector or matrix, with a let at times."""
        own = [type_]
        if self.dice.chance(60):
            own.append(self.dice.pick(("f32", "i32", "vec3f", "mat3x3f", "vec2f")))
        names = self.dice.several(self.world.index_names, 3)
        parameters = tuple(zip(names, own, strict=False))
        place = Place(depth=2, locals=parameters)
        let = ""
        if self.dice.chance(50):
            value = self.any_of(own[-1], place)
            if not value.literal:
                let = f"let {names[2]} = {value.text}; "
                place = replace(place, locals=(*parameters, (names[2], own[-1])))
        body = self.of(type_, place).text
        listed = ", ".join(f"{name}: {t}" for name, t in parameters)
        name = self.world.function_name()
        text = f"fn {name}({listed}) -> {type_} {{ {let}{body} }}"
        function = Function(name, tuple(own), type_, text)
        self.world.functions.append(function)
        return function

    # Reductions

    def reduced(self, type_: str, place: Place) -> Piece:
        """A reduction over an index, each component by itself."""
        if place.locals is not None:
            return self.componentwise(type_, place)
        kinds = ("sum",) if is_matrix(type_) else ("sum", "sum", "max", "min", "prod")
        kind = self.dice.pick(kinds)
        index = self.world.fresh_indices((self.world.axis(),), place.indices)[0]
        return self.reduce_over(kind, type_, index, place)

    def reduce_over(self, kind: str, type_: str, index: Index, place: Place) -> Piece:
        """A reduction over this index, which a read begins with where one can."""
        inner = replace(
            place.inner, indices=(*place.indices, index), depth=place.depth - 2
        )
        tensors = [t for t in self.world.in_parts() if index.axis in t.axes]
        body = None
        if tensors and self.dice.chance(80):
            source = self.parts.over(self.dice.pick(tensors), [index], inner)
            body = self.parts.read(type_, inner, [source])
        if body is None:
            body = self.grammar.load_over(
                self._with_axis(type_, index, place), [index], inner
            )
        given = not binds(index, body.text) or self.dice.chance(15)
        if kind == "prod":
            pass
        elif kind == "sum" and self.dice.chance(60):
            scalar = scalar_of(type_)
            factor = self.scalar(scalar, replace(inner, typed=True, depth=0))
            body = binary("*", body, factor)
        elif self.dice.chance(40):
            body = binary(self.dice.pick("+-"), body, self.of(type_, inner))
        binder = f"{index.name} < {index.axis}" if given else index.name
        return reduction(kind, [binder], body)

    def _with_axis(self, type_: str, index: Index, place: Place) -> Tensor:
        """An input over an index."""
        del place
        axis = index.axis if index.axis in self.world.input_axes() else "3"
        return self.world.input(type_, (axis,))
