"""The grammar of expressions: one method per nonterminal, by type."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .dice import Dice
from .parts import Parts
from .pieces import Level, Piece, binary, call, conditional, element, reduction, unary
from .vectors import Vectors
from .world import LITERAL_AXES, Function, Index, Place, Tensor, Type, Value, World

SAFE_FUNCTIONS: dict[str, str] = {
    "sqrt": "sqrt(abs({0}))",
    "inverseSqrt": "inverseSqrt(abs({0}) + 1.0)",
    "exp": "exp(clamp({0}, -4.0, 4.0))",
    "exp2": "exp2(clamp({0}, -4.0, 4.0))",
    "log": "log(abs({0}) + 1.0)",
    "log2": "log2(abs({0}) + 0.5)",
    "pow": "pow(abs({0}) + 0.5, 2.0)",
    "sin": "sin(clamp({0}, -3.0, 3.0))",
    "cos": "cos(clamp({0}, -3.0, 3.0))",
    "atan": "atan({0})",
    "tanh": "tanh({0})",
    "erf": "erf(clamp({0}, -5.0, 5.0))",
    "log1p": "log1p(abs({0}))",
    "expm1": "expm1(clamp({0}, -3.0, 3.0))",
    "fract": "fract({0} * 0.25)",
    "smoothstep": "smoothstep(-1.0, 3.0, clamp({0}, -4.0, 4.0))",
    "mix": "mix({0}, {1}, 0.25)",
    "radians": "radians({0})",
}
"""Calls whose argument is kept where the function has a bound."""

EXACT_FUNCTIONS = ("abs", "floor", "ceil", "round", "trunc", "saturate", "sign")
PAIRS = ("max", "min", "max", "min", "step")
BITS = (
    *("countOneBits", "countLeadingZeros", "countTrailingZeros"),
    *("firstLeadingBit", "firstTrailingBit", "reverseBits", "abs"),
)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


_VALUE = re.compile(r"\b(?!(?:if|else|true|false|and|or|not)\b)[A-Za-z_]\w*\b(?!\()")
"""The name of a value in an expression; without one it is made of literals alone."""


@dataclass
class Grammar:
    """Draws expressions in a world."""

    world: World
    parts: Parts = field(init=False)
    vectors: Vectors = field(init=False)

    def __post_init__(self) -> None:
        self.parts = Parts(self)
        self.vectors = Vectors(self)

    @property
    def dice(self) -> Dice:
        """Where choices come from."""
        return self.world.dice

    def of(self, type_: Type, place: Place) -> Piece:
        """Draw an expression."""
        if place.depth <= 0 or self.dice.chance(25):
            return self.leaf(type_, place)
        if type_ == "f32":
            kinds: list[Callable[[Type, Place], Piece]] = [
                *(self.arithmetic, self.arithmetic, self.arithmetic, self.arithmetic),
                *(
                    self.function,
                    self.exact_call,
                    self.branch,
                    self.called,
                    self.reduced,
                ),
                *(self.guarded, self.cast, self.negated, self.function, self.divided),
            ]
        else:
            kinds = [
                *(self.arithmetic, self.arithmetic, self.bits, self.bits, self.shift),
                *(self.exact_call, self.branch, self.reduced, self.cast, self.negated),
                *(
                    self.integer_division,
                    self.integer_division,
                    self.bit_call,
                    self.called,
                ),
            ]
        if self.world.composites:
            kinds += [self.of_vectors] * 2
        return self.dice.pick(kinds)(type_, place)

    def of_vectors(self, type_: Type, place: Place) -> Piece:
        """A scalar that is computed from vectors, or a part of something."""
        if self.dice.chance(50):
            found = self.parts.read(type_, place)
            if found is not None:
                return found
        if type_ == "f32":
            return self.vectors.measure(place)
        return self.vectors.dotted(type_, place)

    # Leaves

    def leaf(self, type_: Type, place: Place) -> Piece:
        """A read, an index, a value or a literal."""
        if place.locals is not None:
            own = [name for name, of in place.locals if of == type_]
            if own and self.dice.chance(80):
                return Piece(self.dice.pick(own))
            found = self.parts.read(type_, place)
            return found or self.literal(type_, place)
        if self.world.composites and self.dice.chance(35):
            found = self.parts.read(type_, place)
            if found is not None:
                return found
        roll = self.dice.below(100)
        if roll < (70 if type_ == "f32" else 45):
            return self.read(type_, place)
        if roll < 85:
            return self.value(type_)
        if type_ == "i32" and place.indices:
            return Piece(self.dice.pick(place.indices).name)
        return self.literal(type_, place)

    def literal(self, type_: Type, place: Place) -> Piece:
        """A number; a whole one may stand for an f32 where the place says so."""
        if type_ == "f32":
            if place.typed and self.dice.chance(25):
                return Piece(str(self.dice.below(4)), literal=True)
            texts = ("1.0", "2.0", "0.5", "3.0", "0.0", "1.5", "0.1", "-1.0")
            text = self.dice.pick(texts)
        elif type_ == "i32":
            text = self.dice.pick(("1", "2", "3", "0", "-1", "7", "-5", "1000003"))
        else:
            text = self.dice.pick(("1", "2", "3", "5", "0", "747796405", "4294967295"))
            if not place.typed:
                return call("u32", [Piece(self.dice.pick(("1", "2", "3", "77")))])
        level = Level.UNARY if text.startswith("-") else Level.ATOM
        return Piece(text, level, literal=True)

    def value(self, type_: Type) -> Piece:
        """A scalar, a host, a constant, or a dim."""
        if type_ == "i32" and self.dice.chance(30):
            return Piece(self.dice.pick(self.world.dims_read()))
        known = self.world.of_type(type_)
        if known and (len(known) > 3 or self.dice.chance(60)):
            return Piece(self.dice.pick(known).name)
        return Piece(self.new_value(type_).name)

    def new_value(self, type_: Type) -> Value:
        """A new scalar, with or without a default, or a constant; f32 hosts too."""
        roll = self.dice.below(100)
        name = self.world.name()
        if roll < 25 and type_ == "f32":
            component = f"{name}.{self.dice.pick('yx')}"
            value = Value(component, type_, "scalar", argument=(1.0, -2.0))
        elif roll < 60:
            texts = {
                "f32": ("2.0", "0.5", "1.5"),
                "i32": ("2", "0", "-3"),
                "u32": ("3", "0", "9"),
            }
            text = self.dice.pick(texts[type_])
            argument = float(text) if type_ == "f32" else int(text)
            default = self.dice.pick(texts[type_]) if self.dice.chance(50) else ""
            value = Value(name, type_, "scalar", default, argument)
        elif roll < 80 and type_ != "u32":
            value = Value(name, type_, "host", self.host(type_))
        else:
            consts = {
                "f32": ("0.25", "2.0 * 1.5"),
                "i32": ("3", "0 - 2"),
                "u32": ("6", "1 << 4"),
            }
            value = Value(name, type_, "const", self.dice.pick(consts[type_]))
        self.world.values.append(value)
        return value

    def host(self, type_: Type) -> str:
        """What a host computes: integers stay integers, one float makes all doubles."""
        dims = self.world.dims_read()
        dim, other = self.dice.pick(dims), self.dice.pick(dims)
        if type_ == "i32":
            whole = (f"{dim} + 1", f"{dim} * {other} - 3", f"max({dim}, 2)",
                     f"({dim} + 7) / 2", f"if {dim} > 2 {{ {other} }} else {{ -1 }}",
                     f"{dim} % 3")  # fmt: skip
            return self.dice.pick(whole)
        reals = [v.name for v in self.world.of_type("f32") if v.role != "const"]
        reals += self.parts.on_host("f32") * 2
        real = self.dice.pick(reals) if reals else "0.75"
        forms = (f"1 - {real}", f"{real} * {dim} + 0.5", f"1.0 / ({dim} + 1)",
                 f"pow(0.9, {dim})", f"max({real}, 1)", f"sqrt({dim} + 2.0)",
                 f"if {dim} < 3 {{ {real} }} else {{ 2.5 }}")  # fmt: skip
        return self.dice.pick(forms)

    # Reads

    def read(self, type_: Type, place: Place) -> Piece:
        """An element of a tensor."""
        tensors = self.world.readable(type_)
        if tensors and (self.world.crowded or self.dice.chance(60)):
            return self.load(self.dice.pick(tensors), place)
        if self.world.crowded:
            return self.literal(type_, place)
        return self.load(self.world.input(type_, self.axes_near(place)), place)

    def axes_near(self, place: Place) -> tuple[str, ...]:
        """Axes that the indices in scope can subscript: some, in any order."""
        axes = [i.axis for i in place.indices if i.axis in self.world.input_axes()]
        count = min(len(axes), 1 + self.dice.below(2 + len(axes) // 3))
        if not axes or self.dice.chance(5):
            return ()
        return tuple(dict.fromkeys(self.dice.several(axes, count)))

    def load(self, tensor: Tensor, place: Place) -> Piece:
        """A read of a tensor, by bare indices where there are any."""
        return element(tensor.name, [self.subscript(a, place) for a in tensor.axes])

    def subscript(self, axis: str, place: Place) -> str:
        """One subscript for an axis."""
        bare = [index.name for index in place.indices if index.axis == axis]
        if bare and self.dice.chance(85):
            return self.dice.pick(bare)
        forms = self.world.forms_for(axis, place)
        if not forms:
            return self.dice.pick(bare) if bare else self.gather(axis, place)
        form = self.dice.pick(forms)
        return form if form != "gather" else self.gather(axis, place)

    def gather(self, axis: str, place: Place) -> str:
        """A subscript that is read from a tensor of integers."""
        del axis
        type_: Type = "u32" if self.dice.chance(30) else "i32"
        within = [i for i in place.indices if i.axis in self.world.input_axes()]
        over = self.dice.pick(within) if within else None
        ids = self.world.input(type_, (over.axis,) if over else ())
        read = element(ids.name, [over.name] if over else [])
        if type_ == "i32" and self.dice.chance(30):
            return binary(self.dice.pick("+-"), read, Piece("1")).text
        return read.text

    # Operators

    def arithmetic(self, type_: Type, place: Place) -> Piece:
        """A sum, a difference or a product."""
        op = self.dice.pick(("+", "-", "*"))
        left = self.of(type_, place.inner)
        right = self.of(type_, replace(place.inner, typed=True))
        return binary(op, left, right)

    def divided(self, type_: Type, place: Place) -> Piece:
        """A quotient by something that is not near 0."""
        left = self.of(type_, place.inner)
        if self.dice.chance(50):
            return binary("/", left, self.dice.pick((Piece("2.0"), Piece("3.0"))))
        right = call("abs", [self.of(type_, place.self_typed())])
        return binary("/", left, binary("+", right, Piece("1.0")))

    def integer_division(self, type_: Type, place: Place) -> Piece:
        """A quotient or remainder of integers, by 0 too; functions refuse a literal's."""
        left = self.of(type_, place.inner)
        right = self.of(type_, replace(place.inner, typed=True, depth=0))
        if self.dice.chance(15) and _VALUE.search(right.text):
            return call(self.dice.pick(("floor_div", "mod")), [left, right])
        return binary(self.dice.pick("/%"), left, right)

    def bits(self, type_: Type, place: Place) -> Piece:
        """A combination of bits."""
        left = self.of(type_, place.inner)
        right = self.of(type_, replace(place.inner, typed=True))
        return binary(self.dice.pick("&|^"), left, right)

    def shift(self, type_: Type, place: Place) -> Piece:
        """A shift by any count; a number that nothing else gives a type names its own."""
        left = self.of(type_, place.inner)
        if not place.typed and not _VALUE.search(left.text):
            left = call(type_, [left])
        if self.dice.chance(50):
            count = Piece(self.dice.pick(("1", "3", "31", "33")), literal=True)
        else:
            count = self.of("u32", replace(place.inner, typed=True, depth=0))
        return binary(self.dice.pick(("<<", ">>")), left, count)

    def negated(self, type_: Type, place: Place) -> Piece:
        """A sign, or all bits turned."""
        ops = {"f32": "-", "i32": "-~", "u32": "~"}[type_]
        return unary(self.dice.pick(ops), self.of(type_, place.inner))

    def cast(self, type_: Type, place: Place) -> Piece:
        """A conversion, of a truth too."""
        sources: list[Type] = ["f32", "i32", "u32"]
        if self.dice.chance(30):
            return call(type_, [self.truth(place.inner)])
        sources.remove(type_)
        source = self.dice.pick(sources)
        operand = self.of(source, place.self_typed())
        # The place of a literal in a cast, and of an `if` whose branches are literals, asks
        # for the type of the cast.
        literal = operand.literal or not _VALUE.search(operand.text)
        fixed = source == "i32" and literal
        if fixed and place.locals is not None:
            operand = self.truth(place.inner)
        elif fixed:
            operand = Piece(self.dice.pick(self.world.dims_read()))
        return call(type_, [operand])

    # Branches

    def truth(self, place: Place) -> Piece:
        """A condition."""
        roll = self.dice.below(100)
        if place.depth > 0 and roll >= 70:
            return self.several_truths(place.inner)
        if roll < 3:
            return Piece(self.dice.pick(("true", "false")))
        if roll < 6:
            return call("is_finite", [self.of("f32", replace(place.inner, typed=True))])
        type_: Type = self.dice.pick(("f32", "i32", "u32", "i32"))
        left = self.of(
            type_, replace(place.self_typed(), depth=min(place.depth - 1, 1))
        )
        right = self.leaf(type_, replace(place, typed=True))
        return binary(self.dice.pick(COMPARISONS), left, right)

    def several_truths(self, place: Place) -> Piece:
        """Conditions that are joined or turned."""
        sides = self.truth(place), self.truth(replace(place, branch=True))
        if self.dice.chance(25):
            return unary("not", sides[0])
        joined = binary(self.dice.pick(("and", "or")), *sides)
        return unary("not", joined) if self.dice.chance(40) else joined

    def branch(self, type_: Type, place: Place) -> Piece:
        """An `if`, with one `else if` at times."""
        inside = replace(place.inner, branch=True)
        condition, then = self.truth(place.inner), self.of(type_, inside)
        if self.dice.chance(50):
            otherwise = conditional(
                self.truth(place.inner),
                self.of(type_, replace(inside, depth=0)),
                self.leaf(type_, inside),
            )
        else:
            otherwise = self.of(type_, inside)
        return conditional(condition, then, otherwise)

    def guarded(self, type_: Type, place: Place) -> Piece:
        """A neighbour's element, with a guard for the border: `x[i - 1]`."""
        near = [i for i in place.indices if i.axis in self.world.input_axes()]
        if not near or not self.world.landed("neighbours"):
            return self.branch(type_, place)
        index = self.dice.pick(near)
        tensor = self.world.input(type_, (index.axis,))
        at, condition = self.dice.pick(
            (
                (f"{index.name} - 1", f"{index.name} > 0"),
                (f"{index.name} + 1", f"{index.name} + 1 < {index.axis}"),
                (f"{index.name} - 2", f"{index.name} >= 2"),
            )
        )
        rest = self.leaf(type_, replace(place, branch=True))
        return conditional(Piece(condition), element(tensor.name, [at]), rest)

    # Calls

    def function(self, type_: Type, place: Place) -> Piece:
        """A built-in that rounds, its argument kept where it has a bound."""
        if type_ != "f32":
            return self.exact_call(type_, place)
        form = SAFE_FUNCTIONS[self.dice.pick(tuple(SAFE_FUNCTIONS))]
        inner = replace(place.self_typed(), depth=min(place.depth - 1, 1))
        first = self.of("f32", inner)
        if "{0} *" in form:
            return Piece(form.format(first.at(Level.PRODUCT)))
        return Piece(form.format(first.text, self.leaf("f32", inner).text))

    def exact_call(self, type_: Type, place: Place) -> Piece:
        """A built-in that doesn't round."""
        first = self.of(type_, place.self_typed())
        second = self.of(type_, replace(place.inner, typed=True))
        roll = self.dice.below(5)
        if roll in {0, 4}:
            chosen = self.truth(place.inner)
            return call("select", [first, second, chosen])
        if roll == 1 and type_ != "u32":
            names = EXACT_FUNCTIONS if type_ == "f32" else ("abs", "sign")
            return call(self.dice.pick(names), [first])
        pairs = PAIRS if type_ == "f32" else PAIRS[:4]
        return call(self.dice.pick(pairs), [first, second])

    def bit_call(self, type_: Type, place: Place) -> Piece:
        """A built-in on bits."""
        first = self.of(type_, place.self_typed())
        if self.dice.chance(30):
            ends = [
                Piece(self.dice.pick(("0", "3", "20"))),
                Piece(self.dice.pick(("5", "32"))),
            ]
            if self.dice.chance(50):
                return call("extractBits", [first, *ends])
            second = self.of(type_, replace(place.inner, typed=True))
            return call("insertBits", [first, second, *ends])
        return call(self.dice.pick(BITS), [first])

    def called(self, type_: Type, place: Place) -> Piece:
        """A function of the file."""
        if place.locals is not None:
            return self.arithmetic(type_, place)
        known = [f for f in self.world.functions if f.result == type_]
        if known and (len(self.world.functions) > 2 or self.dice.chance(50)):
            function = self.dice.pick(known)
        else:
            function = self.new_function(type_)
        typed = replace(place.inner, typed=True)
        given = [self.vectors.any_of(t, typed) for t in function.parameters]
        return call(function.name, given)

    def new_function(self, type_: Type) -> Function:
        """A function of one or two parameters, with a let at times."""
        own: list[Type] = [type_, self.dice.pick(("f32", "i32"))]
        own = own[: 1 + self.dice.below(2)]
        names = self.dice.several(self.world.index_names, 3)
        parameters = tuple(zip(names, own, strict=False))
        place = Place(depth=2, locals=parameters)
        let = ""
        if self.dice.chance(60):
            value = self.of(type_, replace(place, typed=False))
            if not value.literal:
                let = f"let {names[2]} = {value.text}; "
                place = replace(place, locals=(*parameters, (names[2], type_)))
        body = self.of(type_, place).text
        listed = ", ".join(f"{name}: {t}" for name, t in parameters)
        name = self.world.function_name()
        text = f"fn {name}({listed}) -> {type_} {{ {let}{body} }}"
        function = Function(name, tuple(own), type_, text)
        self.world.functions.append(function)
        return function

    # Reductions

    def reduced(self, type_: Type, place: Place) -> Piece:
        """A reduction over one or two indices, which its body begins with."""
        if place.locals is not None:
            return self.arithmetic(type_, place)
        if type_ == "i32" and self.dice.chance(30):
            return self.place(place)
        kind = self.dice.pick(("sum", "sum", "max", "min", "prod"))
        axes = tuple(self.world.axis() for _ in range(1 + self.dice.chance(30)))
        indices = self.world.fresh_indices(axes, place.indices)
        return self.reduce_over(kind, type_, indices, place)

    def place(self, place: Place) -> Piece:
        """The place of the greatest or least of some numbers."""
        types: tuple[Type, ...] = ("f32", "f32", "i32", "u32")
        indices = self.world.fresh_indices((self.world.axis(),), place.indices)
        kind = self.dice.pick(("argmax", "argmin"))
        return self.reduce_over(kind, self.dice.pick(types), indices, place)

    def reduce_over(
        self, kind: str, type_: Type, indices: list[Index], place: Place
    ) -> Piece:
        """A reduction over these indices."""
        inner = replace(place.inner, indices=(*place.indices, *indices))
        condition = ""
        if self.dice.chance(40):
            condition = self.condition(indices, place)
            inner = replace(inner, branch=True)
        wanted = tuple(index.axis for index in indices)
        alike = [t for t in self.world.readable(type_) if set(wanted) <= set(t.axes)]
        if alike and (self.world.crowded or self.dice.chance(60)):
            tensor = self.dice.pick(alike)
        else:
            axes = [*wanted, *(i.axis for i in place.indices if self.dice.chance(60))]
            axes = [a for a in axes if a in self.world.input_axes()][:3]
            shuffled = tuple(self.dice.several(axes, len(axes)))
            tensor = self.world.input(type_, shuffled)
        head = self.load_over(tensor, indices, inner)
        if not self.world.landed("given ranges"):
            indices = [i for i in indices if uses(head, i)]
            inner = replace(inner, indices=(*place.indices, *indices))
        body = head
        if kind != "prod" and self.dice.chance(60):
            op = self.dice.pick(("*", "*", "+", "-"))
            body = binary(
                op, head, self.of(type_, replace(inner, depth=place.depth - 2))
            )
        binders = [self.binder(index, head, condition) for index in indices]
        return reduction(kind, binders, body, condition)

    def condition(self, indices: list[Index], place: Place) -> str:
        """What chooses the terms of a reduction: a bound, a key, or anything."""
        own, roll = self.dice.pick(indices), self.dice.below(100)
        outer = self.dice.pick(place.indices).name if place.indices else ""
        if outer and roll < 30:
            return f"{own.name} {self.dice.pick(COMPARISONS)} {outer}"
        if outer and roll < 75 and own.axis in self.world.input_axes():
            type_: Type = "u32" if self.dice.chance(50) else "i32"
            key = element(self.world.input(type_, (own.axis,)).name, [own.name])
            chosen = Piece(f"u32({outer})" if type_ == "u32" else outer)
            return binary("==", *self.dice.several((key, chosen), 2)).text
        known = (*place.indices, *indices)
        return self.truth(replace(place, indices=known, depth=1)).text

    def load_over(self, tensor: Tensor, indices: list[Index], place: Place) -> Piece:
        """A read that uses each of the indices bare, where it has an axis for it."""
        left = list(indices)
        matches: list[Index | None] = []
        for axis in tensor.axes:
            match = next((i for i in left if i.axis == axis), None)
            if match is not None:
                left.remove(match)
            matches.append(match)
        if not self.world.landed("given ranges"):
            known = tuple(i for i in place.indices if i not in left)
            place = replace(place, indices=known)
        subscripts = [
            match.name if match is not None else self.subscript(axis, place)
            for axis, match in zip(tensor.axes, matches, strict=True)
        ]
        return element(tensor.name, subscripts)

    def binder(self, index: Index, head: Piece, condition: str = "") -> str:
        """An index as it is introduced; with its range where nothing else says it.

        A condition may subscript another axis by the index before the head does.
        """
        given = self.world.landed("given ranges") and self.dice.chance(15)
        given |= index.name in _VALUE.findall(condition)
        if uses(head, index) and not given:
            return index.name
        return f"{index.name} < {index.axis}"


def uses(head: Piece, index: Index) -> bool:
    """Whether an index is one of the subscripts of a read."""
    subscripts = head.text.partition("[")[2].removesuffix("]").split(", ")
    return index.name in subscripts


__all__ = ["LITERAL_AXES", "Grammar"]
