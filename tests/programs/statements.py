"""The grammar of statements and of whole programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .grammar import Grammar, uses
from .members import Members
from .pieces import Piece, binary, call, conditional, element, reduction
from .recurrent import recurrence, so_far
from .world import Index, Place, Tensor, Type, World

STRATEGIES = (
    *("map", "reduce", "rows", "gemv", "gemm", "generic"),
    "gemm tile(32, 16, 4) micro(4, 4)",
    "gemv rows(3)",
)
STRATEGIES_OF_STAGES = ("generic", "map", "generic", "reduce", "rows", "gemm")
COMPOUND = ("+=", "-=", "*=", "/=")

IMPURE = frozenset({"update", "in place", "kept", "again", "integers", "bits"})
"""What writes in place or twice, or computes integers alone."""


@dataclass
class Statements:
    """Draws statements into a world."""

    world: World
    grammar: Grammar = field(init=False)
    members: Members = field(init=False)

    def __post_init__(self) -> None:
        self.grammar = Grammar(self.world)
        self.members = Members(self)

    def draw(self) -> None:
        """Draw a program's statements, then its schedules."""
        dice = self.world.dice
        self.world.begin()
        if self.world.composites:
            self.members.begin()
        kinds: Mapping[str, Callable[[], None]] = {
            "element": self.element,
            "reduce": self.reduce,
            "let": self.let,
            "product": self.product,
            "softmax": self.softmax,
            "update": self.update,
            "again": self.again,
            "integers": self.integers,
            "whole": self.whole,
            "window": self.window,
            "nested": self.nested,
            "logic": self.logic,
            "swapped": self.swapped,
            "bits": self.integers,
            "in place": self.update,
            "kept": self.kept,
            "matrices": self.product,
        }
        if self.world.is_pure:
            kinds = {n: kind for n, kind in kinds.items() if n not in IMPURE}
            kinds |= {"so far": self.so_far, "recurrence": self.recurrence}
        count = 1 + dice.below(3) if self.world.composites else 2 + dice.below(4)
        for name in dice.several(tuple(kinds), count):
            kinds[name]()
        if self.world.composites:
            self.members.draw()
        if not any(t.role in {"output", "update"} for t in self.world.tensors):
            self.element()
        if dice.chance(65):
            self.world.schedules.append(self._schedule())

    def _schedule(self) -> str:
        """A schedule of the kernel, or of one of its stages; it may fit none."""
        dice, subject = self.world.dice, self.world.kernel
        strategy = dice.pick(STRATEGIES)
        if dice.chance(65):
            strategy = dice.pick(STRATEGIES_OF_STAGES)
            written = [
                t.name for t in self.world.tensors if t.role in {"output", "update"}
            ]
            subject += f".{dice.pick(written)}"
        guard = f" when {self.world.dims[0]} > 1" if dice.chance(25) else ""
        return f"schedule {subject}{guard} {{ {strategy} }}"

    # Parts

    def axes(self, most: int = 3) -> tuple[str, ...]:
        """Draw the axes of a target: different ones, mostly dims."""
        dice = self.world.dice
        count = dice.pick((1, 2, 2, 1, most, 0))
        axes = [self.world.axis() for _ in range(count)]
        if axes and self.world.landed("output dims") and dice.chance(20):
            form = dice.pick(("{0} / 2", "{0} - 1", "{0} * 2"))
            axes[0] = form.format(dice.pick(self.world.dims))
        return tuple(axes)

    def indices(self, axes: tuple[str, ...]) -> tuple[Index, ...]:
        """Name the indices of a target."""
        return tuple(self.world.fresh_indices(axes, ()))

    def assign(
        self, tensor: Tensor, indices: tuple[Index, ...], op: str, value: Piece
    ) -> None:
        """Write an assignment; the tensor can be read from here on."""
        target = element(tensor.name, [i.name for i in indices])
        self.world.statements.append(f"{target.text} {op} {value.text};")
        tensor.readable = True

    def value(self, type_: Type, indices: tuple[Index, ...], depth: int = 3) -> Piece:
        """Draw the value of a statement."""
        return self.grammar.of(type_, Place(indices, depth))

    def any_type(self) -> Type:
        """Draw a type, mostly f32."""
        return self.world.dice.pick(("f32", "f32", "f32", "i32", "u32"))

    # Statements

    def element(self) -> None:
        """`y[i, j] = ...`, into a new output."""
        axes, type_ = self.axes(), self.any_type()
        indices = self.indices(axes)
        value = self.value(type_, indices)
        self.assign(self.world.add(type_, axes, "output"), indices, "=", value)

    def integers(self) -> None:
        """An output of integers."""
        type_: Type = self.world.dice.pick(("i32", "u32"))
        axes = self.axes(2)
        indices = self.indices(axes)
        value = self.value(type_, indices, 4)
        self.assign(self.world.add(type_, axes, "output"), indices, "=", value)

    def whole(self) -> None:
        """A reduction to rank 0, into an output or a let."""
        type_ = self.any_type()
        value = self.grammar.reduced(type_, Place(depth=2))
        if self.world.dice.chance(50):
            tensor = self.world.add(type_, (), "let")
            tensor.readable = True
            self.world.statements.append(f"let {tensor.name} = {value.text};")
            self.element()
        else:
            self.assign(self.world.add(type_, (), "output"), (), "=", value)

    def let(self) -> None:
        """A let, and a statement that may read it twice or elsewhere."""
        type_, axes = self.any_type(), self.axes(2)
        axes = tuple(a for a in axes if a in self.world.input_axes())
        indices = self.indices(axes)
        source = self.world.input(type_, axes)
        head = self.grammar.load_over(source, list(indices), Place(indices))
        value = head
        if not all(uses(head, i) for i in indices):
            return
        if self.world.dice.chance(80):
            value = binary(
                self.world.dice.pick("+-*"), head, self.value(type_, indices)
            )
        binders = ", ".join(self.grammar.binder(i, head) for i in indices)
        tensor = self.world.add(type_, axes, "let")
        left = f"{tensor.name}[{binders}]" if binders else tensor.name
        self.world.statements.append(f"let {left} = {value.text};")
        self._use(tensor)

    def so_far(self) -> None:
        """Sums of what comes before, and an output of them."""
        self._use(so_far(self.world, self.grammar))

    def recurrence(self) -> None:
        """A let that reads itself, and an output of it."""
        self._use(recurrence(self.world, self.grammar))

    def _use(self, tensor: Tensor) -> None:
        """An output that reads a tensor, maybe twice, and elsewhere."""
        axes = tensor.axes if self.world.dice.chance(70) else self.axes(2)
        indices = self.indices(axes)
        place = Place(indices, 2)
        first = self.grammar.load(tensor, place)
        second = self.grammar.load(tensor, place)
        value = self.value(tensor.scalar, indices, 2)
        if self.world.dice.chance(60):
            value = binary("+", binary("*", first, second), value)
        else:
            value = binary("-", first, value)
        self.assign(self.world.add(tensor.type, axes, "output"), indices, "=", value)

    def reduce(self) -> None:
        """`s[i] = ... sum[j] ...`: free outer axes, and one or two inner ones."""
        dice = self.world.dice
        type_: Type = "f32" if dice.chance(75) else self.any_type()
        axes = tuple(a for a in self.axes(2) if a in self.world.input_axes())
        indices = self.indices(axes)
        value = self.grammar.reduced(type_, Place(indices, 3))
        if dice.chance(50):
            other = self.grammar.of(type_, Place(indices, 1))
            value = binary(dice.pick("+-"), *dice.several((value, other), 2))
        self.assign(self.world.add(type_, axes, "output"), indices, "=", value)

    def nested(self) -> None:
        """A reduction within a reduction."""
        dice, world = self.world.dice, self.world
        axes = tuple(a for a in self.axes(1) if a in world.input_axes())
        indices = self.indices(axes)
        outer = world.fresh_indices((world.axis(),), indices)
        x = world.input("f32", tuple(i.axis for i in (*outer, *indices)))
        place = Place((*indices, *outer), 2)
        head = self.grammar.load_over(x, [*outer, *indices], place)
        inner = self.grammar.reduced("f32", place)
        body = binary(dice.pick("*+"), head, inner)
        binder = self.grammar.binder(outer[0], head)
        value = reduction(dice.pick(("sum", "max", "min")), [binder], body)
        self.assign(world.add("f32", axes, "output"), indices, "=", value)

    def logic(self) -> None:
        """A condition of several parts, as a branch or as a number."""
        dice, type_ = self.world.dice, self.any_type()
        axes = self.axes(2)
        indices = self.indices(axes)
        place = Place(indices, 3)
        truth = self.grammar.several_truths(place)
        if dice.chance(80):
            truth = self._named(truth, indices)
        sides = [self.value(type_, indices, 1) for _ in range(2)]
        roll = dice.below(10)
        if roll < 3:
            value = call(type_, [truth])
        elif roll < 7:
            sides[0] = self.grammar.of(type_, replace(place, depth=1, typed=False))
            value = call("select", [*sides, truth])
        else:
            value = conditional(truth, sides[0], sides[1])
        self.assign(self.world.add(type_, axes, "output"), indices, "=", value)

    def _named(self, truth: Piece, indices: tuple[Index, ...]) -> Piece:
        """A let of a condition, and a read of it: from the far end at times.

        It is told a range only if the read does not show it.
        """
        dice, world = self.world.dice, self.world
        tensor = world.add("bool", tuple(index.axis for index in indices), "let")
        binders: list[str] = []
        subscripts: list[str] = []
        for name, axis in ((index.name, index.axis) for index in indices):
            is_far, is_subscript = dice.chance(20), f"[{name}" in truth.text
            known = not is_far and not is_subscript and f", {name}" not in truth.text
            binders.append(name if known else f"{name} < {axis}")
            subscripts.append(f"{axis} - 1 - {name}" if is_far else name)
        left = f"{tensor.name}[{', '.join(binders)}]" if binders else tensor.name
        world.statements.append(f"let {left} = {truth.text};")
        return element(tensor.name, subscripts) if binders else Piece(tensor.name)

    def swapped(self) -> None:
        """A transpose, and a diagonal at times."""
        dice, world = self.world.dice, self.world
        axes = tuple(dice.several((*world.dims, dice.pick(world.dims)), 2))
        indices = self.indices(axes)
        x = world.input("f32", (axes[1], axes[0]))
        value = element(x.name, [indices[1].name, indices[0].name])
        if dice.chance(50):
            square = world.input("f32", (axes[0], axes[0]))
            value = binary("*", value, element(square.name, [indices[0].name] * 2))
        if dice.chance(60):
            value = binary(dice.pick("+-"), value, self.value("f32", indices, 2))
        self.assign(world.add("f32", axes, "output"), indices, "=", value)

    def product(self) -> None:
        """A product of matrices: any orders of axes, batched, shared or with one row."""
        dice, world = self.world.dice, self.world
        axes = tuple(dice.several((*world.dims, *world.dims), 3))
        batch = (world.axis(),) if dice.chance(65) else ()
        rows = axes[:1] if dice.chance(75) else ()
        form = (*batch, *rows, axes[1])
        indices = self.indices(form)
        over = world.fresh_indices((axes[2],), indices)[0]
        column, row = indices[-1], indices[len(batch) : len(batch) + len(rows)]
        left = self._operand((*row, over), indices[: len(batch)])
        right = self._operand((over, column), indices[: len(batch)])
        factors = dice.several((left, right), 2)
        value = reduction("sum", [over.name], binary("*", *factors))
        if dice.chance(40):
            value = binary("*", self.grammar.value("f32"), value)
        if dice.chance(40):
            value = binary("+", value, self.value("f32", indices, 1))
        known = not batch or uses(left, indices[0]) or uses(right, indices[0])
        if known and dice.chance(30):
            tensor = world.add("f32", form, "let")
            binders = ", ".join(index.name for index in indices)
            world.statements.append(f"let {tensor.name}[{binders}] = {value.text};")
            self._use(tensor)
            return
        self.assign(world.add("f32", form, "output"), indices, "=", value)

    def _operand(self, matrix: tuple[Index, ...], batch: tuple[Index, ...]) -> Piece:
        """One factor: its matrix in either order, with the batch or without."""
        dice = self.world.dice
        chosen = [*dice.several(matrix, len(matrix))]
        if batch and dice.chance(70):
            chosen = [*batch, *chosen]
        tensor = self.world.input("f32", tuple(index.axis for index in chosen))
        return element(tensor.name, [index.name for index in chosen])

    def softmax(self) -> None:
        """The largest of each row, a sum over it, and the quotient, or some of that."""
        dice, world = self.world.dice, self.world
        i, j = world.fresh_indices(tuple(dice.several(world.dims, 2)), ())
        indices = (i, j) if dice.chance(75) else (j,)
        rows = indices[:-1]
        listed = "".join(f"[{index.name}]" for index in rows)
        axes = tuple(index.axis for index in indices)
        names = [index.name for index in indices]
        read = element(world.input("f32", axes).name, names)
        if dice.chance(40):
            scaled = world.add("f32", axes, "output")
            self.assign(scaled, indices, "=", binary("/", read, Piece("3.0")))
            read = element(scaled.name, names)
        top = world.add("f32", tuple(r.axis for r in rows), "let")
        world.statements.append(
            f"let {top.name}{listed} = {reduction('max', [j.name], read).text};"
        )
        shifted = Piece(f"exp({read.text} - {top.name}{listed})")
        if dice.chance(30):
            shifted = binary("-", read, Piece(f"{top.name}{listed}"))
        whole = world.add("f32", tuple(r.axis for r in rows), "let")
        world.statements.append(
            f"let {whole.name}{listed} = {reduction('sum', [j.name], shifted).text};"
        )
        divisor = Piece(
            f"({whole.name}{listed} + 1.0)" if rows else f"max({whole.name}, 1.0)"
        )
        if "exp" not in shifted.text:
            divisor = Piece(f"(abs({whole.name}{listed}) + 1.0)")
        value = binary("/", shifted, divisor)
        if dice.chance(30):
            value = binary("*", value, self.value("f32", indices, 1))
        self.assign(world.add("f32", axes, "output"), indices, "=", value)

    def update(self) -> None:
        """A tensor that changes in place, from its own elements elsewhere too."""
        dice, world = self.world.dice, self.world
        type_: Type = dice.pick(("f32", "f32", "i32"))
        axes = tuple(world.axis() for _ in range(dice.pick((1, 1, 2, 0))))
        tensor = world.add(type_, axes, "update")
        indices = self.indices(axes)
        own = element(tensor.name, [i.name for i in indices])
        place = Place(indices, 2)
        roll = dice.below(10)
        if roll < 5 and axes:
            value = self.elsewhere(tensor, indices)
            if dice.chance(50):
                value = binary("-", value, self.grammar.of(type_, place))
            self.assign(tensor, indices, "=", value)
        elif roll < 8:
            self.assign(tensor, indices, "+=", self.grammar.of(type_, place))
        else:
            value = binary("*", own, self.grammar.of(type_, place))
            self.assign(tensor, indices, "=", value)
        if dice.chance(40):
            later = self.indices(axes)
            self._compound(tensor, later)

    def kept(self) -> None:
        """A let or output from before a write of what it reads, and a use after that."""
        dice, world = self.world.dice, self.world
        axes = (world.axis(),)
        tensor = world.add("f32", axes, "update")
        (index,) = self.indices(axes)
        own = element(tensor.name, [index.name])
        value = own
        if dice.chance(70):
            value = binary(dice.pick("*+-"), own, self.value("f32", (index,), 1))
        if dice.chance(25):
            old = world.add("f32", axes, "output")
            self.assign(old, (index,), "=", value)
        else:
            old = world.add("f32", axes, "let")
            world.statements.append(f"let {old.name}[{index.name}] = {value.text};")
        self._compound(tensor, self.indices(axes))
        later = self.indices(axes)
        target = world.add("f32", axes, "output")
        reads = [element(t.name, [later[0].name]) for t in (old, tensor)]
        self.assign(target, later, "=", binary(dice.pick("+-*"), *reads))

    def elsewhere(self, tensor: Tensor, indices: tuple[Index, ...]) -> Piece:
        """A read of other elements of a tensor than its own."""
        dice, place = self.world.dice, Place(indices, 1)
        if dice.chance(40):
            inner = self.world.fresh_indices(tensor.axes[:1], indices)
            scope = Place((*indices, *inner), 1)
            head = self.grammar.load_over(tensor, inner, scope)
            return reduction("sum", [self.grammar.binder(inner[0], head)], head)
        subscripts: list[str] = []
        for axis in tensor.axes:
            forms = [f for f in self.world.forms_for(axis, place) if f != "gather"]
            if forms and dice.chance(60):
                subscripts.append(dice.pick(forms))
            else:
                subscripts.append(self.grammar.gather(axis, place))
        return element(tensor.name, subscripts)

    def _compound(self, tensor: Tensor, indices: tuple[Index, ...]) -> None:
        op = self.world.dice.pick(COMPOUND if tensor.type == "f32" else COMPOUND[:3])
        place = Place(indices, 2)
        value = self.grammar.of(tensor.scalar, place)
        if op == "/=":
            value = Piece(self.world.dice.pick(("2.0", "4", "3.0")))
        self.assign(tensor, indices, op, value)

    def again(self) -> None:
        """An output written, read, and written again."""
        axes = self.axes(2)
        indices = self.indices(axes)
        tensor = self.world.add("f32", axes, "output")
        self.assign(tensor, indices, "=", self.value("f32", indices, 2))
        if self.world.dice.chance(60):
            self._use(tensor)
        later = self.indices(axes)
        if self.world.dice.chance(60):
            self._compound(tensor, later)
        else:
            first = self.grammar.load(tensor, Place(later))
            value = binary("-", first, self.value("f32", later, 2))
            self.assign(tensor, later, "=", value)

    def window(self) -> None:
        """A reduction over a window of each element: `max[u < 2] x[2 * i + u]`."""
        if not (self.world.landed("given ranges") and self.world.landed("output dims")):
            self.reduce()
            return
        dice, world = self.world.dice, self.world
        dim = dice.pick(world.dims)
        axis, form = dice.pick(
            ((f"{dim} / 2", "2 * {0} + {1}"), (f"{dim} - 1", "{0} + {1}"))
        )
        other = world.axis()
        axes = (other, axis) if dice.chance(50) else (axis,)
        indices = self.indices(axes)
        u = world.fresh_indices(("2",), indices)[0]
        x = world.input("f32", tuple(dim if a == axis else a for a in axes))
        at = form.format(indices[-1].name, u.name)
        read = element(x.name, [*(i.name for i in indices[:-1]), at])
        body = read
        if dice.chance(50):
            place = replace(Place(indices, 1), indices=(*indices, u))
            body = binary("*", read, self.grammar.of("f32", place))
        kind = dice.pick(
            ("max", "sum", "min", "prod") if body is read else ("max", "sum")
        )
        value = reduction(kind, [f"{u.name} < 2"], body)
        self.assign(world.add("f32", axes, "output"), indices, "=", value)
