"""The grammar of statements on structs, vectors and matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .memory import (
    Fixed,
    Memory,
    Record,
    is_composite,
    is_matrix,
    parts_of,
    read_as,
    scalar_of,
)
from .names import Names
from .parts import Parts, binds, routes
from .pieces import Piece, binary
from .structs import MATRICES, VECTORS, struct_item
from .vectors import Vectors
from .world import Index, Parameter, Place, Tensor, Type, Value, World

if TYPE_CHECKING:
    from .statements import Statements

Indices = tuple[Index, ...]

IMPURE = frozenset({"updated struct", "updated vector", "in place"})
"""What writes in place."""


@dataclass
class Members:
    """Draws statements with structs, vectors and matrices into a world."""

    statements: Statements

    @property
    def world(self) -> World:
        """The program so far."""
        return self.statements.world

    @property
    def vectors(self) -> Vectors:
        """What draws values."""
        return self.statements.grammar.vectors

    @property
    def parts(self) -> Parts:
        """What draws reads of parts."""
        return self.statements.grammar.parts

    def begin(self) -> None:
        """Declare structs, and something that is made of each."""
        dice, world = self.world.dice, self.world
        names = Names(dice)
        for _ in range(dice.pick((1, 2, 2, 1, 2, 0))):
            inner = tuple(item.record for item in world.structs)
            item = struct_item(dice, names, inner, world.halves)
            world.structs.append(item)
            if dice.chance(65):
                axes = dice.pick((world.dims[:1], world.dims[1:2], world.dims[:2]))
                world.add(item.record, axes, "input")
            if dice.chance(40):
                world.parameters.append(Parameter(world.name(), item.record))
        reals = self.parts.on_host("f32")
        if reals and dice.chance(35):
            text = f"{dice.pick(reals)} * {world.dims[0]} + {dice.pick(reals)}"
            world.values.append(Value(world.name(), "f32", "host", text))

    def draw(self) -> None:
        """Draw some statements."""
        dice = self.world.dice
        kinds: Mapping[str, Callable[[], None]] = {
            "element": self.element,
            "updated struct": self.updated_struct,
            "struct": self.struct,
            "let": self.let,
            "updated vector": self.updated_vector,
            "measure": self.measure,
            "reduced": self.reduced,
            "products": self.products,
            "directions": self.directions,
            "measures": self.measure,
            "in place": self.updated_struct,
            "output": self.struct,
        }
        if self.world.is_pure:
            kinds = {n: kind for n, kind in kinds.items() if n not in IMPURE}
        for name in dice.several(tuple(kinds), 2 + dice.below(3)):
            kinds[name]()

    def write(
        self, tensor: Tensor, indices: Indices, part: str, value: Piece, op: str = "="
    ) -> None:
        """Write an assignment to a part of an element."""
        names = ", ".join(index.name for index in indices[: len(tensor.axes)])
        target = f"{tensor.name}[{names}]{part}" if names else f"{tensor.name}{part}"
        self.world.statements.append(f"{target} {op} {value.text};")

    # Vectors and matrices

    def element(self) -> None:
        """An output of vectors or matrices."""
        type_, axes = self.vectors.any_type(), self.statements.axes(2)
        indices = self.statements.indices(axes)
        value = self.vectors.of(type_, Place(indices, 3))
        tensor = self.world.add(type_, axes, "output")
        self.statements.assign(tensor, indices, "=", value)

    def products(self) -> None:
        """An output of products with matrices."""
        dice, axes = self.world.dice, self.statements.axes(1)
        indices = self.statements.indices(axes)
        place = Place(indices, 2)
        if dice.chance(50):
            type_ = dice.pick(MATRICES)
            draw = self.vectors.transposed if dice.chance(40) else self.vectors.product
            value = draw(type_, place)
        else:
            type_ = dice.pick(VECTORS[:4])
            value = self.vectors.by_matrix(type_, place)
        tensor = self.world.add(type_, axes, "output")
        self.statements.assign(tensor, indices, "=", value)

    def directions(self) -> None:
        """An output of directions."""
        type_, axes = self.world.dice.pick(VECTORS[:4]), self.statements.axes(1)
        indices = self.statements.indices(axes)
        place = Place(indices, 2)
        sides = [self.vectors.geometric(type_, place) for _ in range(2)]
        value = binary(self.world.dice.pick("+-"), *sides)
        tensor = self.world.add(type_, axes, "output")
        self.statements.assign(tensor, indices, "=", value)

    def measure(self) -> None:
        """An output of scalars that are computed from vectors."""
        axes = self.statements.axes(2)
        indices = self.statements.indices(axes)
        place = Place(indices, 3)
        type_: Type = self.world.dice.pick(("f32", "f32", "i32", "u32"))
        if type_ == "f32":
            sides = self.vectors.measure(place), self.vectors.measure(place)
            value = binary(self.world.dice.pick("+-*"), *sides)
        else:
            value = self.vectors.dotted(type_, place)
        other = self.parts.read(type_, place)
        if other is not None:
            value = binary(self.world.dice.pick("+*-"), value, other)
        tensor = self.world.add(type_, axes, "output")
        self.statements.assign(tensor, indices, "=", value)

    def reduced(self) -> None:
        """A reduction of vectors, to rank 0 or to rank 1."""
        dice, world = self.world.dice, self.world
        axes = (world.axis(),) if dice.chance(65) else ()
        indices = self.statements.indices(axes)
        type_ = self.vectors.any_type()
        index = world.fresh_indices((dice.pick(world.dims),), indices)[0]
        kind = "sum" if is_matrix(type_) else dice.pick(("sum", "sum", "max", "min"))
        value = self.vectors.reduce_over(kind, type_, index, Place(indices, 3))
        tensor = world.add(type_, axes, "output")
        self.statements.assign(tensor, indices, "=", value)

    def let(self) -> None:
        """A let of vectors or matrices, and an output that reads it."""
        dice, world = self.world.dice, self.world
        type_ = self.vectors.any_type()
        if dice.chance(25):
            whole = world.add(type_, (), "let")
            whole.readable = False
            value = self.vectors.reduced(type_, Place(depth=2))
            world.statements.append(f"let {whole.name} = {value.text};")
            whole.readable = True
            self.use(whole)
            return
        axes = (dice.pick(world.dims),)
        indices = self.statements.indices(axes)
        place = Place(indices, 2)
        tensors = [t for t in world.in_parts() if axes[0] in t.axes]
        read: Piece | None = None
        if tensors and dice.chance(80):
            source = self.parts.over(dice.pick(tensors), list(indices), place)
            read = self.parts.read(type_, place, [source])
        value = read or self.vectors.leaf(type_, place)
        given = not binds(indices[0], value.text)
        value = binary(dice.pick("+-"), value, self.vectors.of(type_, place))
        if dice.chance(35):
            value = binary("+", value, self.vectors.reduced(type_, place))
        tensor = world.add(type_, axes, "let")
        binder = f"{indices[0].name} < {axes[0]}" if given else indices[0].name
        world.statements.append(f"let {tensor.name}[{binder}] = {value.text};")
        self.use(tensor)

    def use(self, tensor: Tensor) -> None:
        """An output that reads a tensor of vectors, twice and elsewhere at times."""
        dice = self.world.dice
        type_ = str(tensor.type)
        axes = tensor.axes if dice.chance(60) else self.statements.axes(2)
        indices = self.statements.indices(axes)
        place = Place(indices, 2)
        value = self.statements.grammar.load(tensor, place)
        if dice.chance(60):
            again = self.statements.grammar.load(tensor, place)
            value = binary(dice.pick("+-"), value, again)
        if dice.chance(60):
            value = binary("+", value, self.vectors.of(type_, place))
        made = self.world.add(type_, axes, "output")
        self.statements.assign(made, indices, "=", value)

    def updated_vector(self) -> None:
        """A tensor of vectors or matrices that changes in place."""
        dice, world = self.world.dice, self.world
        type_ = self.vectors.any_type()
        axes = tuple(world.axis() for _ in range(dice.pick((1, 1, 2, 0))))
        tensor = world.add(type_, axes, "update")
        for _ in range(1 + dice.below(3)):
            self.change(tensor, self.statements.indices(axes), "", str(tensor.memory))

    def change(self, tensor: Tensor, indices: Indices, part: str, leaf: str) -> None:
        """Write a scalar, vector or matrix that has a value: all of it, or one number.

        The first of the indices are those of the tensor, others are in the part.
        """
        dice, type_ = self.world.dice, read_as(leaf)
        place = Place(indices, 2)
        if is_composite(type_) and not is_matrix(type_) and dice.chance(35):
            letters = dice.pick(("xyzw", "rgba"))[: len(parts_of(type_))]
            part, type_ = f"{part}.{dice.pick(letters)}", scalar_of(type_)
        ops = ["=", "+=", "-="] if is_matrix(type_) else ["=", "+=", "-=", "*=", "="]
        op = dice.pick(ops)
        value: Piece | None = None
        if dice.chance(50) and op != "*=":
            value = self.elsewhere(tensor, type_, place)
        if op == "*=" and is_composite(type_) and dice.chance(50):
            value = self.vectors.scalar(scalar_of(type_), place)
        elif type_ == "f32" and dice.chance(10):
            op, value = "/=", Piece(dice.pick(("2.0", "4", "3.0")))
        self.write(
            tensor, indices, part, value or self.vectors.any_of(type_, place), op
        )

    def elsewhere(self, tensor: Tensor, type_: str, place: Place) -> Piece | None:
        """A value from a tensor's own elements, or from those of one axis together."""
        dice = self.world.dice
        if tensor.axes and dice.chance(40):
            index = self.world.fresh_indices(tensor.axes[:1], place.indices)[0]
            inner = replace(place, indices=(*place.indices, index))
            source = self.parts.over(tensor, [index], inner)
            read = self.parts.read(type_, inner, [source])
            if read is None:
                return None
            name = index.name
            binder = name if binds(index, read.text) else f"{name} < {index.axis}"
            mine = self.parts.read(type_, place)
            if mine is not None and dice.chance(60):
                read = Piece(f"({read.text} - {mine.text})")
            return Piece(f"(sum[{binder}] {read.text})")
        source = self.parts.element_of(tensor, place)
        return self.parts.read(type_, place, [source])

    # Structs

    def struct(self) -> None:
        """An output of structs: every part is written; some change again."""
        dice, world = self.world.dice, self.world
        if not world.structs:
            self.element()
            return
        record = dice.pick(world.structs[::-1]).record
        axes = self.statements.axes(2)
        tensor = world.add(record, axes, "output")
        indices = self.statements.indices(axes)
        self.fill(tensor, indices, "", record, dice.chance(40))
        tensor.readable = True
        for _ in range(dice.below(3)):
            self.change_part(tensor)

    def updated_struct(self) -> None:
        """A tensor of structs that changes in place, part by part."""
        dice, world = self.world.dice, self.world
        if not world.structs:
            self.updated_vector()
            return
        record = dice.pick(world.structs[::-1]).record
        axes = tuple(world.axis() for _ in range(dice.pick((1, 1, 2, 1, 0))))
        tensor = world.add(record, axes, "update")
        for _ in range(1 + dice.below(4)):
            self.change_part(tensor)

    def change_part(self, tensor: Tensor) -> None:
        """Write one part of each struct: a leaf, or a copy of a larger one."""
        dice = self.world.dice
        indices = self.statements.indices(tensor.axes)
        if dice.chance(45):
            part, memory = dice.pick(list(_larger(tensor.memory)))
            source = self.copied(memory, indices)
            if source is not None:
                self.write(tensor, indices, part, source)
                return
        steps, leaf = dice.pick(list(routes(tensor.memory)))
        part, own = "", list(indices)
        for step in steps:
            if isinstance(step, str):
                part += f".{step}"
                continue
            places: list[str] = []
            for length in step:
                if dice.chance(45):
                    index = self.world.fresh_indices((str(length),), tuple(own))[0]
                    own.append(index)
                    places.append(index.name)
                else:
                    places.append(str(dice.below(length)))
            part += f"[{', '.join(places)}]"
        self.change(tensor, tuple(own), part, leaf)

    def copied(self, memory: Memory, indices: Indices) -> Piece | None:
        """Another place of this type, if there is one that can be read."""
        place = Place(indices, 1)
        found = [
            (source, part)
            for source in self.parts.sources(place)
            for part, inner in _larger(source.memory)
            if inner == memory
        ]
        if not found:
            return None
        source, part = self.world.dice.pick(found)
        return Piece(source.text() + part)

    def fill(
        self, tensor: Tensor, indices: Indices, part: str, memory: Memory, copy: bool
    ) -> None:
        """Write every part of a new struct."""
        dice = self.world.dice
        if not isinstance(memory, str) and (copy or dice.chance(25)):
            source = self.copied(memory, indices)
            if source is not None:
                self.write(tensor, indices, part, source)
                return
        if isinstance(memory, Record):
            for name, member in memory.members:
                self.fill(tensor, indices, f"{part}.{name}", member, copy)
        elif isinstance(memory, Fixed):
            self._fill_array(tensor, indices, part, memory)
        else:
            self._fill_leaf(tensor, indices, part, memory)

    def _fill_array(
        self, tensor: Tensor, indices: Indices, part: str, array: Fixed
    ) -> None:
        lengths: list[int] = []
        memory: Memory = array
        while isinstance(memory, Fixed):
            lengths.append(memory.length)
            memory = memory.element
        if len(lengths) == 1 and self.world.dice.chance(55):
            for number in range(lengths[0]):
                self.fill(tensor, indices, f"{part}[{number}]", memory, False)
            return
        own = self.world.fresh_indices(tuple(map(str, lengths)), indices)
        names = ", ".join(index.name for index in own)
        self.fill(tensor, (*indices, *own), f"{part}[{names}]", memory, False)

    def _fill_leaf(
        self, tensor: Tensor, indices: Indices, part: str, leaf: str
    ) -> None:
        dice, type_ = self.world.dice, read_as(leaf)
        place = Place(indices, 1 + dice.below(2))
        if is_composite(type_) and not is_matrix(type_) and dice.chance(20):
            letters = "xyzw"[: len(parts_of(type_))]
            for letter in dice.several(letters, len(letters)):
                value = self.vectors.scalar(scalar_of(type_), place)
                self.write(tensor, indices, f"{part}.{letter}", value)
            return
        self.write(tensor, indices, part, self.vectors.any_of(type_, place))


def _larger(memory: Memory, part: str = "") -> Iterator[tuple[str, Memory]]:
    """Yield a struct and every struct or array in it, each with how it is written."""
    if isinstance(memory, str):
        return
    yield part, memory
    if isinstance(memory, Record):
        for name, member in memory.members:
            yield from _larger(member, f"{part}.{name}")
    elif isinstance(memory.element, Record):
        yield from _larger(memory.element, f"{part}[{memory.length - 1}]")
