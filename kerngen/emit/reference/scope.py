"""The state of printing a reference: names, loops, and the lines so far."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Protocol, final

from kerngen.emit.calls import FunctionInfo
from kerngen.emit.members import attributes
from kerngen.emit.python_code import Code, tuple_text
from kerngen.emit.python_names import PythonNamer
from kerngen.emit.reference.types import components
from kerngen.emit.writer import Writer
from kerngen.ir.memory import MemoryType, Struct
from kerngen.ir.nodes import Expr, Extent, Index, Tensor, UniformValue
from kerngen.ir.types import Scalar, ValueType, scalar_of

TYPED = {
    Scalar.F32: "real",
    Scalar.I32: "ref.i32",
    Scalar.U32: "ref.u32",
    Scalar.BOOL: "np.asarray",
}
"""The function that makes an array of each type, or of its vectors."""

DTYPES = {
    Scalar.F32: "real.dtype",
    Scalar.I32: "np.int32",
    Scalar.U32: "np.uint32",
    Scalar.BOOL: "np.bool_",
}
"""The dtype of each type."""

RESERVED = frozenset(("np", "ref", "real", "hostmath", "geometry"))
"""The names that a reference's body relies on: no local variable may have them."""


@final
class FunctionBody:
    """The body of a generated function while it is printed.

    Printers of expressions write lines to `writer`, as for a reduction by loops, and note
    what the head of the function must define: `dims`, `scalars`, `uses_real`, and the arrays
    in `gathered`, by their text.  `loops` are the indices of the loops that are open.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        constants: Mapping[str, str],
        functions: Mapping[str, FunctionInfo],
        structs: Mapping[Struct, str] = MappingProxyType({}),
        parameters: Mapping[str, MemoryType] = MappingProxyType({}),
    ) -> None:
        self.writer = Writer()
        self.names = names
        self.constants = constants
        self.functions = functions
        self.structs = structs
        self.parameters = parameters
        self.uses_real = False
        self.dims: dict[str, None] = {}
        self.scalars: dict[str, None] = {}
        self.loops: dict[Index, str] = {}
        self.gathered: dict[str, str] = {}
        self._ranges: set[str] = set()
        self._locals: dict[tuple[str, str], str] = {}
        self._namer = PythonNamer([*names.values(), *constants.values(), *RESERVED])

    def typed(self, code: Code, type_: ValueType) -> Code:
        """Return the value as an array of a type."""
        return Code(f"{self.maker(type_)}({code.text})")

    def maker(self, type_: ValueType) -> str:
        """Return the name of the function that makes arrays of a type."""
        self.uses_real |= scalar_of(type_) is Scalar.F32
        return TYPED[scalar_of(type_)]

    def halved(self, text: str) -> Code:
        """Return the value of a text, rounded to f16."""
        self.uses_real = True
        return Code(f"real.halved({text})", fresh=True)

    def dtype(self, type_: ValueType) -> str:
        """Return the dtype of arrays of a type."""
        self.uses_real |= scalar_of(type_) is Scalar.F32
        return DTYPES[scalar_of(type_)]

    def kept(self, tensor: Tensor) -> str:
        """Return the dtype of a tensor's array: `real.half` for f16, `np.int8` for i4."""
        if isinstance(tensor.element, Struct):
            return f"ref.kept({self.structs[tensor.element]}.DTYPE)"
        if tensor.narrow:
            return "np.int8" if tensor.element is Scalar.I32 else "np.uint8"
        if not tensor.is_half:
            return self.dtype(tensor.element)
        self.uses_real = True
        return "real.half"

    def extent(self, extent: Extent) -> str:
        """Return the length of an axis."""
        return str(extent) if isinstance(extent, int) else self.dim(extent)

    def dim(self, name: str) -> str:
        """Return the variable of a dim, and note that the head must define it."""
        self.dims[name] = None
        return self.names[name]

    def argument(self, value: UniformValue) -> str:
        """Return the variable of a parameter, a host, or a part of one.

        The variable of a scalar is a Python number.
        """
        self.scalars[value.name] = None
        name = self.names[value.name]
        if not value.path:
            return name
        return attributes(self.parameters[value.name], value.path, name)

    def fresh(self, wanted: str) -> str:
        """Return an unused name that resembles `wanted`."""
        return self._namer.claim(wanted)

    def gather_source(self, wanted: str, text: str) -> str:
        """Return the name of an array that many statements gather from.

        Its definition, `text`, is written once, before all statements.
        """
        if text not in self.gathered:
            self.gathered[text] = self.fresh(wanted)
        return self.gathered[text]

    def shape(self, frame: Iterable[Index], type_: ValueType) -> str:
        """Return the shape of an array of a type that lies along a whole frame."""
        axes = (self.extent(index.extent) for index in frame)
        return tuple_text((*axes, *map(str, components(type_))))

    def whole(self, tensor: Tensor) -> str:
        """Return the shape of a tensor's array."""
        element = tensor.element
        inner = () if isinstance(element, Struct) else components(element)
        return tuple_text((*map(self.extent, tensor.extents), *map(str, inner)))

    def range_of(self, index: Index) -> str:
        """Define an array of the index's values before this line, and return its name."""
        length = self.extent(index.extent)
        # A name for each length: with one name, an array of another length, defined within
        # a loop, would be wrong behind it.
        name = self._local(f"range {length}", index.name)
        if name not in self._ranges:
            self._ranges.add(name)
            self.writer.line(f"{name} = ref.index({length})")
        return name

    @contextmanager
    def loops_over(self, indices: Iterable[Index]) -> Generator[None]:
        """Write nested loops over the indices."""
        with ExitStack() as stack:
            for index in indices:
                stack.enter_context(self.loop(index))
            yield

    @contextmanager
    def loop(self, index: Index, *, descending: bool = False) -> Generator[None]:
        """Write a loop over an index, from 0 on or from the last value down."""
        name = self._local("loop", index.name)
        self.loops[index] = name
        values = f"range({self.extent(index.extent)})"
        with self.block(
            f"for {name} in {f'reversed({values})' if descending else values}:"
        ):
            yield
        del self.loops[index]

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Write an indented block; names defined in it are forgotten after it."""
        ranges = set(self._ranges)
        with self.writer.block(head):
            yield
        self._ranges = ranges

    def _local(self, kind: str, index: str) -> str:
        """Name a variable of an index; its arrays and its loop variable are apart."""
        key = (kind, index)
        if key not in self._locals:
            others = [name for (_, of), name in self._locals.items() if of == index]
            own = self.names[index]
            self._locals[key] = self.fresh(own) if others else own
        return self._locals[key]


class ExpressionPrinter(Protocol):
    """The interface of the expression printer, as printers of its parts see it."""

    @property
    def scope(self) -> FunctionBody:
        """The function being printed."""
        ...

    def print(self, expr: Expr, frame: tuple[Index, ...]) -> Code:
        """Return the expression, aligned with the frame."""
        ...
