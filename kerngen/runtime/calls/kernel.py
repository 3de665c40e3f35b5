"""The description of a kernel that a generated module hands to the runtime.

Nothing here touches a GPU: these are the facts of a kernel, as the compiler printed
them.  `Kernel.launch` is the one call that the generated bindings make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, final

from kerngen.plan import tree
from kerngen.plan.wgsl import only
from kerngen.runtime.calling import kernel_function
from kerngen.runtime.calls.checks import (
    array_shape,
    find_context,
    not_a_context,
    not_several,
    resolve_lengths,
)
from kerngen.runtime.calls.scalars import check_scalars, prepare
from kerngen.runtime.errors import Error, StateError
from kerngen.runtime.stamp import stamp_of
from kerngen.runtime.struct import Fit, UniformStruct, fit_of
from kerngen.runtime.values.fields import is_leaf

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from kerngen.runtime.context import Context
    from kerngen.runtime.tensor import Tensor
    from kerngen.runtime.values.elements import Element

Dims: TypeAlias = Mapping[str, int]
"""The lengths of a call by dim name, and its guard scalars: `{"m": 64, "step": 2}`."""


class TextFile(Protocol):
    """A file of text: a `Path`, or a file in memory."""

    def read_text(self, encoding: str) -> str:
        """Return the text."""
        ...


class Folder(Protocol):
    """A folder of shader files: a `Path`, or a folder in memory."""

    def __truediv__(self, name: str, /) -> TextFile:
        """Return the file with this name."""
        ...


KERNEL: Final = "__kernel__"
"""The attribute of a generated function that holds its kernel."""

_Function = TypeVar("_Function", bound=Callable[..., object])


@final
@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor parameter (access `read`, or `update` if `mut`) or an output (`write`).

    `axes` are names of dims, or numbers: `x: f32[m, 3]` has ("m", 3).
    """

    name: str
    element: type[Element]
    axes: tuple[str | int, ...]
    access: tree.Access


@final
class _NoArgument:
    """A type of which nothing is made."""


@final
@dataclass(frozen=True)
class ScalarSpec:
    """A parameter in the uniform struct: a scalar, vector, matrix or struct."""

    name: str
    element: type[Element]

    @cached_property
    def fit(self) -> Fit:
        """A function that checks an argument, and returns its numbers as nested tuples."""
        return fit_of(self.element)

    @property
    def python_type(self) -> type:
        """The Python type of arguments that need no conversion.

        Vectors and matrices always need one: theirs is a type that no argument has.
        """
        if not is_leaf(self.element):
            return self.element
        if self.element.shape:
            return _NoArgument
        return int if self.element.number.is_integer else float


@final
@dataclass(frozen=True, slots=True)
class Temporary:
    """A tensor that lives between the stages of one call."""

    name: str
    element: type[Element]
    axes: tuple[str | int, ...]


@final
@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel as the runtime sees it: parameters, shaders, plan and NumPy reference.

    - `tensors`: the tensor parameters in the source's order, then the outputs
    - `hosts`: takes every dim, derived ones last, then every scalar parameter (a vector or
      matrix is one tuple), and returns the uniform struct's values in field order: vectors
      and matrices flattened, structs as they are
    - `read_body`: returns the steps of the plan, which are parsed at the first call
    - `reference`: takes the tensor parameters as NumPy arrays, then the scalars by keyword,
      changes `update` arrays in place, and returns the output, a tuple of them, or None
    """

    name: str
    origin: str
    folder: Folder
    dims: tuple[str, ...]
    tensors: tuple[TensorSpec, ...]
    scalars: tuple[ScalarSpec, ...]
    uniform: type[UniformStruct]
    hosts: Callable[..., tuple[float, ...]]
    read_body: Callable[[], tree.Sequence]
    reference: Callable[..., Any]
    temporaries: tuple[Temporary, ...] = ()
    derived: tuple[tree.DerivedDim, ...] = ()
    checks: tuple[tree.RangeCheck, ...] = ()
    gathers: tuple[tree.Gather, ...] = ()
    requires: tuple[tree.Requirement, ...] = ()
    guard_scalars: tuple[str, ...] = ()
    """The scalars that guards, lengths and checks read: `step`, or `camera.width`.

    They are part of a launch's plan key.
    """
    computed: tuple[str, ...] = ()
    """The symbols of plans whose values `compute` returns, in its order."""
    compute: Callable[[dict[str, Any]], tuple[int, ...]] | None = None
    stamp: str = ""
    """The hash of the source that the kernel was generated from."""
    gradient: tree.GradientOf | None = None
    """The kernel that this one is the gradient of, if it was derived."""

    def function(self, function: _Function) -> _Function:
        """Mark a generated function as this kernel's; a decorator.

        A call with wrong arguments raises an error that explains the parameters.
        """
        setattr(function, KERNEL, self)
        return kernel_function(function)

    @cached_property
    def body(self) -> tree.Sequence:
        """The steps of the plan, which are parsed when they are first asked for.

        Raises:
            AbiError: If the plan file is damaged.
        """
        return self.read_body()

    @cached_property
    def place(self) -> str:
        """The kernel's name and its line in the source, for errors."""
        return f"{self.name} ({self.origin})"

    @property
    def derivation(self) -> tree.GradientOf:
        """The kernel that this one is the gradient of, if it was derived."""
        assert self.gradient is not None
        return self.gradient

    @cached_property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The tensor parameters."""
        return tuple(spec for spec in self.tensors if spec.access != "write")

    @cached_property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs."""
        return tuple(spec for spec in self.tensors if spec.access == "write")

    @cached_property
    def lengths(self) -> tuple[str, ...]:
        """The names of all dims: those of arguments, then the derived ones."""
        return (*self.dims, *(dim.name for dim in self.derived))

    @cached_property
    def derived_texts(self) -> Mapping[str, str]:
        """The source text of each derived dim's length."""
        return {dim.name: dim.text for dim in self.derived}

    @cached_property
    def no_out(self) -> tuple[None, ...]:
        """The value of `out` if the caller gives none: a None for each output."""
        return (None,) * len(self.outputs)

    @cached_property
    def guard_slots(self) -> tuple[int, ...]:
        """The position among the scalars of each guard scalar, or of the struct that has it."""
        names = [spec.name for spec in self.scalars]
        return tuple(names.index(name.split(".")[0]) for name in self.guard_scalars)

    @cached_property
    def scalar_types(self) -> tuple[type, ...]:
        """For each scalar parameter, the Python type of arguments that need no conversion."""
        return tuple(spec.python_type for spec in self.scalars)

    @cached_property
    def integer_ranges(self) -> tuple[tuple[int, float, float], ...]:
        """The position, least and greatest value of each integer scalar."""
        numbers = [
            (slot, spec.element.number)
            for slot, spec in enumerate(self.scalars)
            if is_leaf(spec.element) and spec.python_type is int
        ]
        return tuple((slot, each.lowest, each.highest) for slot, each in numbers)

    @property
    def size_names(self) -> tuple[str, ...]:
        """The names of all numbers that schedules are chosen by: dims, then integer scalars."""
        return (*self.dims, *self.guard_scalars)

    def guards(self, scalars: tuple[Any, ...]) -> Dims:
        """Return the values of a call's guard scalars, by name."""
        slots = zip(self.guard_scalars, self.guard_slots, strict=True)
        return {name: _part(scalars[slot], name) for name, slot in slots}

    def check(
        self, arrays: tuple[ArrayLike, ...], scalars: tuple[Any, ...] = ()
    ) -> None:
        """Refuse arguments of the NumPy reference whose shapes or scalars don't fit.

        Raises what `launch` would raise.
        """
        scalars = prepare(self, scalars)
        given = zip(self.inputs, arrays, strict=True)
        shapes = [array_shape(self, spec, array) for spec, array in given]
        lengths = resolve_lengths(self, shapes, self.guards(scalars))
        check_scalars(self, tuple(lengths[dim] for dim in self.lengths), scalars)

    def shader(self, dispatch: tree.Dispatch) -> str:
        """Return the text of a dispatch's shader; raise `Error` if it can't be read.

        The text is that of the file, without declarations that only other entry points
        use.
        """
        path = self.folder / dispatch.file
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise Error(
                f"{self.place}: can't read the shader {path} ({error.strerror}). Run "
                f"'kerngen build' again."
            ) from error
        # Both have the hash of the source that they were generated from.
        own = stamp_of(text)
        if self.stamp and own and self.stamp != own:
            raise StateError(
                f"{self.name}: the shader {path} was generated again after its module "
                "was imported. Call 'kerngen.runtime.reload()', or restart."
            )
        return only(text, dispatch.entry)

    def launch(
        self,
        ctx: Context | None,
        tensors: tuple[Tensor[Any, Any], ...],
        scalars: tuple[Any, ...],
        out: tuple[Tensor[Any, Any] | None, ...] | None = None,
    ) -> tuple[Tensor[Any, Any], ...]:
        """Check the arguments, record the kernel and return its outputs.

        `out` has one entry per output, or is None.  Raises the classes of
        `kerngen.runtime.errors`, before anything is recorded.  Their tracebacks end here:
        it is the call that is wrong, not what lies below.
        """
        try:
            if out is None:
                out = self.no_out
            # The class first: the usual `out` is a tuple, and no derived class.
            elif out.__class__ is not tuple and not _is_tuple(out):
                raise not_several(self, out)
            if ctx is None:
                ctx = find_context(self, tensors)
            # A wrong `ctx` is found by what it lacks: no check for calls that are right.
            try:
                backend = ctx.backend
            except AttributeError:
                raise not_a_context(self, ctx) from None
            return backend.launch(ctx, self, tensors, scalars, out)
        except Error as error:
            raise error.with_traceback(None) from error.__cause__


def _part(value: Any, name: str) -> Any:
    """Return the part of a scalar that a name such as `camera.width` or `v.0` means."""
    for step in name.split(".")[1:]:
        value = value[int(step)] if step.isdecimal() else getattr(value, step)
    return value


def _is_tuple(out: object) -> bool:
    return isinstance(out, tuple)
