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

    Printers of expressions add lines to `writer`, as for a reduction by loops, and note what
    the head of the function must define: `dims`, `scalars`, `uses_real`, and the arrays in
    `gathered`, whose names are mapped from their code.  `loops` has the variables of the loops
    around the current line, by index.
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
        """Return the code that makes a value an array of a type."""
        return Code(f"{self.maker(type_)}({code.text})")

    def maker(self, type_: ValueType) -> str:
        """Return the name of the generated code's function that makes arrays of a type."""
        self.uses_real |= scalar_of(type_) is Scalar.F32
        return TYPED[scalar_of(type_)]

    def halved(self, text: str) -> Code:
        """Return the code that rounds the value of some code, `text`, to f16."""
        self.uses_real = True
        return Code(f"real.halved({text})", fresh=True)

    def dtype(self, type_: ValueType) -> str:
        """Return the code of the dtype of arrays of a type."""
        self.uses_real |= scalar_of(type_) is Scalar.F32
        return DTYPES[scalar_of(type_)]

    def kept(self, tensor: Tensor) -> str:
        """Return the code of a tensor's dtype: `real.half` for f16, `np.int8` for i4."""
        if isinstance(tensor.element, Struct):
            return f"ref.kept({self.structs[tensor.element]}.DTYPE)"
        if tensor.narrow:
            return "np.int8" if tensor.element is Scalar.I32 else "np.uint8"
        if not tensor.is_half:
            return self.dtype(tensor.element)
        self.uses_real = True
        return "real.half"

    def extent(self, extent: Extent) -> str:
        """Return the code of an axis's length: a number, or the variable of a dim."""
        return str(extent) if isinstance(extent, int) else self.dim(extent)

    def dim(self, name: str) -> str:
        """Return the variable of a dim, and note that the head must define it."""
        self.dims[name] = None
        return self.names[name]

    def argument(self, value: UniformValue) -> str:
        """Return the code of a parameter, a host, or a part of one.

        A scalar is a Python number there.
        """
        self.scalars[value.name] = None
        name = self.names[value.name]
        if not value.path:
            return name
        return attributes(self.parameters[value.name], value.path, name)

    def fresh(self, wanted: str) -> str:
        """Return an unused name that resembles `wanted`; it is then in use."""
        return self._namer.claim(wanted)

    def gather_source(self, wanted: str, text: str) -> str:
        """Return the name of an array that many statements gather from.

        Its definition, `text`, is written once, before all statements.
        """
        if text not in self.gathered:
            self.gathered[text] = self.fresh(wanted)
        return self.gathered[text]

    def shape(self, frame: Iterable[Index], type_: ValueType) -> str:
        """Return the code of the shape of an array that lies along all indices of a frame.

        A vector's or matrix's own lengths, by `type_`, are last.
        """
        axes = (self.extent(index.extent) for index in frame)
        return tuple_text((*axes, *map(str, components(type_))))

    def whole(self, tensor: Tensor) -> str:
        """Return the code of the shape of a tensor's array."""
        element = tensor.element
        inner = () if isinstance(element, Struct) else components(element)
        return tuple_text((*map(self.extent, tensor.extents), *map(str, inner)))

    def range_of(self, index: Index) -> str:
        """Return the name of an array of all values of an index; define it if need be."""
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
        """Write nested loops over the indices, around the lines written in the `with` block."""
        with ExitStack() as stack:
            for index in indices:
                stack.enter_context(self.loop(index))
            yield

    @contextmanager
    def loop(self, index: Index, *, descending: bool = False) -> Generator[None]:
        """Write a loop over an index, around the lines written in the `with` block.

        It goes from 0 on, or from the last value down.
        """
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
        """Write `head`, and indent the lines written in the `with` block.

        Ranges defined in it are forgotten after it.
        """
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
        """Return the code of an expression, whose value is aligned with the frame."""
        ...
