"""What a reference knows while it is printed: names, loops, and lines written so far."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from typing import Protocol, final

from kerngen.emit.functions import FunctionInfo
from kerngen.emit.python_code import Code, tuple_text
from kerngen.emit.python_names import PythonNamer
from kerngen.emit.writer import Writer
from kerngen.ir.nodes import Expr, Extent, Index, Tensor, UniformValue
from kerngen.ir.types import Scalar

TYPED = {
    Scalar.F32: "real",
    Scalar.I32: "ref.i32",
    Scalar.U32: "ref.u32",
    Scalar.BOOL: "np.asarray",
}
"""The function that makes an array of each type."""

DTYPES = {
    Scalar.F32: "real.dtype",
    Scalar.I32: "np.int32",
    Scalar.U32: "np.uint32",
    Scalar.BOOL: "np.bool_",
}
"""The dtype of each type."""

RESERVED = frozenset(("np", "ref", "real", "hostmath"))
"""What a reference's body relies on."""


@final
class Scope:
    """The body of one generated function."""

    def __init__(
        self,
        names: Mapping[str, str],
        constants: Mapping[str, str],
        functions: Mapping[str, FunctionInfo],
    ) -> None:
        self.writer = Writer()
        self.names = names
        self.constants = constants
        self.functions = functions
        self.uses_real = False
        self.dims: dict[str, None] = {}
        self.scalars: dict[str, None] = {}
        self.loops: dict[Index, str] = {}
        self._ranges: set[str] = set()
        self._locals: dict[tuple[str, str], str] = {}
        self._namer = PythonNamer([*names.values(), *constants.values(), *RESERVED])

    def typed(self, code: Code, scalar: Scalar) -> Code:
        """Return the value as an array of its type."""
        self.uses_real |= scalar is Scalar.F32
        return Code(f"{TYPED[scalar]}({code.text})")

    def dtype(self, scalar: Scalar) -> str:
        """Return the dtype of arrays of a type."""
        self.uses_real |= scalar is Scalar.F32
        return DTYPES[scalar]

    def kept(self, tensor: Tensor) -> str:
        """Return the dtype of the array that stands for a tensor."""
        if not tensor.is_half:
            return self.dtype(tensor.element)
        self.uses_real = True
        return "real.half"

    def extent(self, extent: Extent) -> str:
        """Return the length of an axis."""
        return str(extent) if isinstance(extent, int) else self.dim(extent)

    def dim(self, name: str) -> str:
        """Return the variable that holds a dim, which the function must then define."""
        self.dims[name] = None
        return self.names[name]

    def uniform(self, value: UniformValue) -> str:
        """Return the variable that holds a scalar; it must hold a Python number."""
        self.scalars[value.name] = None
        return self.names[value.name]

    def fresh(self, wanted: str) -> str:
        """Return a name that nothing else has."""
        return self._namer.claim(wanted)

    def shape(self, frame: Iterable[Index]) -> str:
        """Return the shape of an array that lies along a whole frame."""
        return tuple_text(self.extent(index.extent) for index in frame)

    def range_of(self, index: Index) -> str:
        """Return the name of an array of the index's values, defined before this line."""
        length = self.extent(index.extent)
        # A name for each length: what a loop defines anew would be wrong outside of it.
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
                stack.enter_context(self._loop(index))
            yield

    @contextmanager
    def _loop(self, index: Index) -> Generator[None]:
        """Write a loop over an index."""
        name = self._local("loop", index.name)
        self.loops[index] = name
        with self.block(f"for {name} in range({self.extent(index.extent)}):"):
            yield
        del self.loops[index]

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Write a block; what is defined in it is unknown after it."""
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


class Printer(Protocol):
    """What prints an expression, as the printers of its parts see it."""

    @property
    def scope(self) -> Scope:
        """The function being printed."""
        ...

    def print(self, expr: Expr, frame: tuple[Index, ...]) -> Code:
        """Return the expression laid along the frame."""
        ...
