"""Builds one shader: claims names, collects bindings, functions and constants.

A strategy writes statements (`kerngen.shader.tree`) and asks the builder for names and
places: `s.extent("n")` is `u.n`, and declares the uniform struct; `s.buffer(x)` declares the
binding of a tensor at its first use.  `finish` puts all of it together as a WGSL module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final, final

from kerngen.ir.memory import Leaf, MemoryType, Struct, holds_half
from kerngen.ir.nodes import Extent, Function, Index, Tensor
from kerngen.ir.types import Scalar, Storage, ValueType
from kerngen.layout.rules import Space
from kerngen.layout.types import Laid, lay_out
from kerngen.plan.size import ZERO, Size
from kerngen.plan.tree import Binding
from kerngen.schedule.extents import MergedExtent
from kerngen.schedule.lowering.narrow import packer, reader
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.task import Task
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t
from kerngen.shader.depth import named_where_deep
from kerngen.shader.helpers import helpers
from kerngen.shader.names import unlike_enumerants, value_namer
from kerngen.shader.printer import print_module
from kerngen.shader.structs import StructDeclarations, members_of

# Built-in values of an entry point: WGSL's name, the variable that is wanted, its type.
WORKGROUP: Final = ("workgroup_id", "workgroup", "vec3u")
GRID: Final = ("num_workgroups", "grid", "vec3u")
LANE: Final = ("local_invocation_index", "lane", "u32")
SUBGROUP: Final = (
    ("subgroup_size", "subgroup_size", "u32"),
    ("subgroup_invocation_id", "subgroup_lane", "u32"),
)


@final
@dataclass(frozen=True, slots=True)
class Packed:
    """How narrow integers are packed: `function` shifts an element to its `place` in `word`."""

    word: t.Ident
    place: t.Expr
    function: str


@final
@dataclass(frozen=True, slots=True)
class StorageBinding:
    """A storage binding as the shader sees it: an array of elements, or of vectors of four.

    Scalars that are f16 in memory are converted to f32 when loaded, and back when stored.
    """

    name: str
    lanes: int
    expr: t.Expr
    memory: Leaf | Struct
    reader: Callable[[int], str] | None = None
    """For narrow integers: returns the name of the function that reads one, or four."""
    packed: Packed | None = None
    """For narrow integers that are written: the word that elements are packed into."""

    @property
    def laid(self) -> Laid:
        """The layout of an element in memory."""
        return lay_out(self.memory, Space.STORAGE)

    @property
    def is_half(self) -> bool:
        """Whether the buffer's elements are f16 in memory."""
        return isinstance(self.memory, Leaf) and self.memory.is_half

    def load(self, address: t.Operand) -> t.Expr:
        """Return the element at `address`; if vectors are bound, the vector of that number."""
        if self.reader:
            return t.call(self.reader(self.lanes), address)
        return self._read(self.expr[address], self.lanes)

    def element(self, address: t.Expr) -> t.Expr:
        """Return one element; `address` counts elements, even if vectors are bound."""
        if self.reader:
            return t.call(self.reader(1), address)
        if self.lanes == 1:
            return self.load(address)
        return self._read(self.expr[address // self.lanes][address % self.lanes], 1)

    def store(self, address: t.Operand, value: t.Expr) -> t.Stmt:
        """Return the statement that stores one element, or a vector of four.

        Narrow integers are packed into a variable, a word that is stored later:

            y_word |= y_packed(value, place);
        """
        if self.packed:
            bits = t.call(self.packed.function, value, self.packed.place)
            return t.Assign(self.packed.word, bits, "|=")
        if self.is_half:
            value = t.call(wgsl_type(Storage.F16, self.lanes), value)
        return t.Assign(self.expr[address], value)

    def _read(self, place: t.Expr, lanes: int) -> t.Expr:
        if self.is_half:
            return t.call(wgsl_type(Scalar.F32, lanes), place)
        return place


def wgsl_type(type_: ValueType | Storage, lanes: int = 1) -> str:
    """Return the WGSL name of `type_`, or of a vector of `lanes` scalars of that type."""
    if lanes == 1:
        return type_.spelling
    return f"vec{lanes}{_SUFFIXES[type_.spelling]}"


_SUFFIXES: Final = {"f32": "f", "i32": "i", "u32": "u", "f16": "h", "bool": "<bool>"}
"""What follows `vec4` for each scalar; other types have but one lane."""


@final
class ShaderBuilder:
    """Collects the declarations of one shader while a strategy writes its body.

    - `_names`: the shader's names of the user's values, by space, name and suffix
    - `_buffers`: the bindings so far, by tensor; `_written`: the tensors that are stored to
    - `_declared`: all declarations by a key, such as `buffer x` or `function square4`
    - `_constants`: the values of overrides; `_lengths`: lengths that the shader computes
    """

    def __init__(
        self,
        task: Task,
        lanes_of: dict[str, int],
        *,
        words: frozenset[str] = frozenset(),
    ) -> None:
        """Start a shader; `lanes_of` names the tensors that are bound as vectors.

        The tensors `words`, of narrow integers, are bound as `vec4u`; the strategy reads them.
        """
        self.task = task
        self._lanes_of = lanes_of
        self._words = words
        self._packed: dict[str, tuple[t.Ident, t.Expr]] = {}
        self._members = members_of(task.layout)
        self._helpers = helpers()
        # The names of helpers, for 1 to 4 lanes, are taken from the start.
        self._namer = value_namer(
            f"{name}{suffix}" for name in self._helpers for suffix in ("", *"234")
        )
        self._structs = StructDeclarations(self._namer)
        self._names: dict[tuple[str, str, str], str] = {}
        self._buffers: dict[str, StorageBinding] = {}
        self._declared: dict[str, wgsl.Declaration] = {}
        self._constants: dict[str, int] = {}
        self._lengths: dict[str, t.Expr] = {}
        self._uses_uniform = False
        self._subgroup: tuple[t.Ident, ...] = ()
        self._written = {tensor.name for tensor in task.stage.tensors_written}
        self._claim_users_names()
        self._uniform = self.fresh("u")
        self.workgroup, self.grid, self.lane = (
            t.Ident(self.fresh(name)) for _, name, _ in (WORKGROUP, GRID, LANE)
        )

    def _claim_users_names(self) -> None:
        """Claim the user's names first: of two equal names, the second gets a suffix."""
        kernel = self.task.kernel
        for tensor in (*kernel.tensors, *self.task.staged.temporaries):
            self.name(tensor.name)

    @property
    def subgroup(self) -> tuple[t.Ident, ...]:
        """The built-ins `subgroup_size` and `subgroup_lane`, the lane's number in its subgroup.

        A shader that uses them enables subgroups, and runs only on adapters that have them.
        """
        if not self._subgroup:
            names = (self.fresh(name) for _, name, _ in SUBGROUP)
            self._subgroup = tuple(t.Ident(name) for name in names)
        return self._subgroup

    # Names

    def name(self, wanted: str, space: str = "value", suffix: str = "") -> str:
        """Return the WGSL name of a user's value, constant or function: the same at each call.

        Equal names in two `space`s are different names in WGSL.  `suffix` distinguishes the
        forms of one function, such as `square` and `square4`.
        """
        key = (space, wanted, suffix)
        if key not in self._names:
            shown = unlike_enumerants(f"{wanted}{suffix}")
            self._names[key] = self._namer.claim(shown)
        return self._names[key]

    def fresh(self, wanted: str) -> str:
        """Return an unused name that resembles `wanted`."""
        return self._namer.claim(wanted)

    def let(self, body: list[t.Stmt], wanted: str, value: t.Expr) -> t.Ident:
        """Append a `let` of `value` to a body, named like `wanted`; return its identifier."""
        name = t.Ident(self.fresh(wanted))
        body.append(t.Let(name.name, value))
        return name

    # Values from the host

    def uniform(self, field: str) -> t.Expr:
        """Return a field of the uniform struct."""
        self._uses_uniform = True
        return t.Member(t.Ident(self._uniform), self._members[field])

    def laid_uniform(self, field: str) -> Laid:
        """Return the layout of a field of the uniform struct."""
        return self.task.layout.field(field).laid

    def extent(self, extent: Extent) -> t.Expr:
        """Return the length of an axis as a u32: a literal, a field of the uniform, a product."""
        match extent:
            case int(length):
                return t.u32(length)
            case MergedExtent():
                return reduce(t.multiply, map(self.extent, extent.axes))
            case str(dim):
                return self._lengths.get(dim) or self.uniform(dim)

    def set_length(self, extent: str, value: t.Expr) -> None:
        """Set the value of `extent`, a length of a scratch buffer that the shader computes."""
        self._lengths[extent] = value

    def size(self, indices: tuple[Index, ...]) -> t.Expr:
        """Return the number of elements of the domain over `indices`, as a u32."""
        result = t.ONE
        for index in indices:
            result = result * self.extent(index.extent)
        return result

    # Declarations

    def buffer(self, tensor: Tensor) -> StorageBinding:
        """Return a tensor's binding, declaring it at its first use."""
        return self._storage(tensor.name, tensor.memory)

    def scratch(
        self, wanted: str, element: ValueType, *, written: bool
    ) -> StorageBinding:
        """Return the binding of the scratch buffer `wanted`, declaring it at its first use."""
        name = self.task.scratch_name(wanted)
        return self._storage(name, Leaf(element), written=written)

    def atomics(self, wanted: str) -> StorageBinding:
        """Return the binding of a scratch buffer of u32 for atomic operations."""
        buffer = self.scratch(wanted, Scalar.U32, written=True)
        key = f"buffer {buffer.name}"
        plain = self._declared[key]
        assert isinstance(plain, wgsl.Buffer)
        self._declared[key] = replace(plain, type="array<atomic<u32>>")
        return buffer

    def _storage(
        self, name: str, memory: Leaf | Struct, *, written: bool | None = None
    ) -> StorageBinding:
        if name not in self._buffers:
            if written:
                self._written.add(name)
            lanes = self._lanes_of.get(name, 1)
            # A scratch buffer may be wanted by the name of a local value: it has a name space
            # of its own.
            shown = self.name(name, "scratch" if written is not None else "value")
            narrow = memory.narrow if isinstance(memory, Leaf) else None
            read = partial(self._reader, shown, narrow) if narrow else None
            packed = self._packer(name, shown, narrow, lanes) if narrow else None
            buffer = StorageBinding(name, lanes, t.Ident(shown), memory, read, packed)
            # The type of the array's elements: words by fours, vectors, or one element.
            element = self._structs.type_of(buffer.laid)
            if name in self._words:
                element = wgsl_type(Scalar.U32, LANES)
            elif lanes > 1 and not narrow:
                assert isinstance(memory, Leaf), "only scalars are bound by fours"
                element = wgsl_type(memory.storage, lanes)
            self._buffers[name] = buffer
            space = "read_write" if name in self._written else "read"
            # Binding 0 for now: `_ordered` numbers all bindings.
            self._declared[f"buffer {name}"] = wgsl.Buffer(
                0,
                f"storage, {space}",
                shown,
                f"array<{element}>",
            )
        return self._buffers[name]

    def _reader(self, tensor: str, narrow: Storage, lanes: int) -> str:
        """Return the name of the function that reads one element, or four."""
        name = self.name(f"{tensor}_four" if lanes > 1 else f"{tensor}_one", "reader")
        text = reader(name, tensor, narrow, lanes)
        self.declare(f"function {name}", wgsl.Verbatim(text))
        return name

    def pack(self, tensor: Tensor, word: t.Ident, place: t.Expr) -> None:
        """Make stores to a tensor of narrow integers pack each element into `word` at `place`.

        Call it before `buffer(tensor)`.
        """
        self._packed[tensor.name] = word, place

    def _packer(
        self, name: str, shown: str, narrow: Storage, lanes: int
    ) -> Packed | None:
        if name not in self._packed:
            return None
        word, place = self._packed[name]
        function = self.name(f"{shown}_packed", "packer")
        text = packer(function, shown, narrow, lanes)
        self.declare(f"function {function}", wgsl.Verbatim(text))
        return Packed(word, place, function)

    def workgroup_array(self, wanted: str, type_: str, size: int) -> t.Expr:
        """Declare a variable of array type `type_`, of `size` bytes, in workgroup memory."""
        name = self.fresh(wanted)
        self._declared[f"shared {name}"] = wgsl.WorkgroupVar(name, type_, size)
        return t.Ident(name)

    def const(self, name: str, type_: Scalar, value: t.Expr) -> t.Expr:
        """Return one of the user's constants, declaring it at its first use."""
        shown = self.name(name, "const")
        self._declared[f"const {name}"] = wgsl.Const(shown, type_.value, value)
        return t.Ident(shown)

    def override(self, wanted: str, value: int) -> t.Ident:
        """Return an override: a constant whose value is set when the pipeline is made.

        Shaders that differ only in overrides share one file.
        """
        name = self.fresh(wanted)
        self._declared[f"override {name}"] = wgsl.Override(name)
        self._constants[name] = value
        return t.Ident(name)

    def has(self, key: str) -> bool:
        """Whether a declaration with this key was added."""
        return key in self._declared

    def declare(self, key: str, declaration: wgsl.Declaration) -> None:
        """Add a declaration, unless one with this key was added before."""
        self._declared.setdefault(key, declaration)

    def helper(self, name: str, lanes: int) -> str:
        """Declare a helper function for values of 1 to 4 lanes, and return its name in WGSL."""
        suffix = str(lanes) if lanes > 1 else ""
        text = self._helpers[name].format(
            T=wgsl_type(Scalar.F32, lanes),
            I=wgsl_type(Scalar.I32, lanes),
            U=wgsl_type(Scalar.U32, lanes),
            B=wgsl_type(Scalar.BOOL, lanes),
            S=suffix,
        )
        self.declare(f"function {name}{suffix}", wgsl.Verbatim(text.strip("\n")))
        return f"{name}{suffix}"

    def function(self, name: str) -> Function:
        """Return the function of that name that the user's kernel defines."""
        return self.task.functions[name]

    # The whole

    def finish(
        self,
        body: list[t.Stmt],
        *,
        groups: Size,
        workgroup_size: int,
        workgroup_name: str = "",
        summary: str,
        variant: str = "",
        terms: Size = ZERO,
        trips: Size = ZERO,
    ) -> DispatchShader:
        """Return the shader whose entry point has `body`.

        If the workgroup's size is an override, `workgroup_name` is its name, and
        `workgroup_size` its value.
        """
        # Compilers of WGSL limit how deep expressions are nested: deep ones get names.
        shallow = named_where_deep(body, self.fresh)
        size = workgroup_name or workgroup_size
        entry = wgsl.EntryPoint(size, self._builtin_inputs(), shallow)
        parts = (self.task.stem, self.task.label)
        return DispatchShader(
            stem=".".join(part for part in parts if part),
            variant=variant,
            title=self._title,
            summary=summary,
            equations=tuple(x.text for x in self.task.stage.steps if x.text),
            code=print_module(self._module((*self._ordered(), entry))),
            bindings=tuple(
                Binding(name, name in self._written) for name in self._bound()
            ),
            uses_uniform=self._uses_uniform,
            groups=groups,
            workgroup_size=workgroup_size,
            terms=terms,
            trips=trips,
            subgroups=bool(self._subgroup),
            constants=tuple(self._constants.items()),
            workgroup_bytes=self._workgroup_bytes,
        )

    def _builtin_inputs(self) -> tuple[tuple[str, str, str], ...]:
        """Return the entry point's parameters: each built-in's attribute, name and type."""
        # Without subgroups `known` is shorter: `zip` leaves those built-ins out.
        known = (self.workgroup, self.grid, self.lane, *self._subgroup)
        return tuple(
            (builtin, self._text(name), type_)
            for (builtin, _, type_), name in zip(
                (WORKGROUP, GRID, LANE, *SUBGROUP), known, strict=False
            )
        )

    @property
    def _workgroup_bytes(self) -> int:
        """How many bytes of workgroup memory the shader declares."""
        declared = self._declared.values()
        return sum(x.size for x in declared if isinstance(x, wgsl.WorkgroupVar))

    def _module(self, declarations: tuple[wgsl.Declaration, ...]) -> wgsl.Module:
        # WGSL has f16 only under `enable f16`, in buffers and in the uniform struct.
        held: list[MemoryType] = [b.memory for b in self._buffers.values()]
        if self._uses_uniform:
            held += (field.type for field in self.task.layout.fields)
        extensions = {
            "f16": any(map(holds_half, held)),
            "subgroups": bool(self._subgroup),
        }
        enables = tuple(name for name, used in extensions.items() if used)
        return wgsl.Module(declarations, enables)

    def _text(self, expr: t.Expr) -> str:
        if not isinstance(expr, t.Ident):
            raise TypeError(expr)
        return expr.name

    @property
    def _title(self) -> str:
        kernel, stage = self.task.kernel, self.task.stage
        many = len(self.task.staged.stages) > 1 or stage.name != kernel.name
        title = f"{kernel.name}, stage {stage.name}" if many else kernel.name
        return f"{title}: {self.task.label}"

    def _bound(self) -> list[str]:
        """Return the names of bindings in the kernel's order, numbered from 1."""
        staged = self.task.staged
        tensors = (*staged.kernel.tensors, *staged.temporaries)
        listed = [x.name for x in tensors if x.name in self._buffers]
        return listed + [name for name in self._buffers if name not in listed]

    def _ordered(self) -> list[wgsl.Declaration]:
        """Return the declarations in the order of the file.

        Constants come first, then the uniform struct, bindings in the kernel's order, workgroup
        memory and functions.
        """
        for number, name in enumerate(self._bound(), start=1):
            buffer = self._declared.pop(f"buffer {name}")
            if isinstance(buffer, wgsl.Buffer):
                numbered = replace(buffer, binding=number)
                self._declared[f"buffer {name}"] = numbered
        # Constants first: bindings and arrays may have them in their types.
        found = list(self._declared.values())
        order = (wgsl.Buffer, wgsl.WorkgroupVar, wgsl.Function | wgsl.Verbatim)
        ranked = [d for kind in order for d in found if isinstance(d, kind)]
        constants = [d for d in found if isinstance(d, wgsl.Const | wgsl.Override)]
        return [*constants, *self._uniform_declarations(), *ranked]

    def _uniform_declarations(self) -> list[wgsl.Declaration]:
        """Return the structs that buffers hold, and the uniform binding."""
        if not self._uses_uniform:
            return [*self._structs.declarations]
        name = self._structs.declare_uniform(self.task.layout)
        uniform = wgsl.Buffer(0, "uniform", self._uniform, name)
        return [*self._structs.declarations, uniform]
