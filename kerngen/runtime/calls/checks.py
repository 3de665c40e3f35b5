"""Checks of the tensors of a call, with errors that name them as the user does.

Everything here depends on element types and shapes alone (and on the scalars that
guards read), so that a call like an earlier one needs none of it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from kerngen.runtime.calls.belonging import of_another_context
from kerngen.runtime.calls.ranges import (
    LONGEST,
    check_gathers,
    check_ranges,
    derive,
    shape_of,
    show_axis,
)
from kerngen.runtime.errors import ContextError, DtypeError, ShapeError
from kerngen.runtime.reference import kept
from kerngen.runtime.tensor import Tensor, is_tensor
from kerngen.runtime.values.elements import Element, Leaf
from kerngen.runtime.values.fields import is_leaf
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from kerngen.runtime.calls.kernel import Kernel, TensorSpec
    from kerngen.runtime.context import Context

_MAKERS = ("scalar", "vector", "matrix", "tensor3", "tensor4")
"""The methods of a context that make tensors, by rank."""


@final
@dataclass(frozen=True, slots=True)
class CheckedShapes:
    """The result of checking a call's shapes: all lengths, and the shapes of what it makes.

    - `dims`: the dims by name, with the integer scalars that guards read
    - `values`: the dims alone, in the kernel's order, derived ones last
    """

    dims: Mapping[str, int]
    values: tuple[int, ...]
    outputs: tuple[Shape, ...]
    temporaries: tuple[Shape, ...]


def find_context(kernel: Kernel, tensors: Sequence[object]) -> Context:
    """Return the context of the first tensor; raise if no argument is one."""
    for tensor in tensors:
        if isinstance(tensor, Tensor):
            return tensor.ctx
    for spec, tensor in zip(kernel.inputs, tensors, strict=False):
        raise _not_a_tensor(kernel, spec, tensor, f"argument '{spec.name}'")
    raise ContextError(
        f"{kernel.place}: no argument is a tensor; pass ctx= to choose the context."
    )


def not_a_context(kernel: Kernel, value: object) -> ContextError:
    """Return the error for a `ctx=` that is not a context."""
    return ContextError(
        f"{kernel.place}: ctx is {kind_of(value)}; expected a context, as "
        f"kerngen.runtime.open() returns it."
    )


def check_arguments(
    kernel: Kernel, ctx: Context, tensors: Sequence[object], out: Sequence[object]
) -> None:
    """Refuse arguments that are no tensors, or that belong to another context."""
    _check_count(kernel, "tensors", len(kernel.inputs), len(tensors))
    for spec, tensor in zip(kernel.inputs, tensors, strict=True):
        _check_tensor(kernel, ctx, spec, tensor, f"argument '{spec.name}'")
    _check_count(kernel, "out tensors", len(kernel.outputs), len(out))
    for spec, tensor in zip(kernel.outputs, out, strict=True):
        if tensor is not None:
            _check_tensor(kernel, ctx, spec, tensor, f"out '{spec.name}'")


def _check_count(kernel: Kernel, what: str, expected: int, actual: int) -> None:
    if actual != expected:
        raise ShapeError(f"{kernel.place}: expected {expected} {what}, got {actual}.")


def _check_tensor(
    kernel: Kernel, ctx: Context, spec: TensorSpec, tensor: object, role: str
) -> None:
    if not is_tensor(tensor):
        raise _not_a_tensor(kernel, spec, tensor, role)
    if tensor.ctx is not ctx:
        raise of_another_context(f"{kernel.place}: {role}", tensor.ctx, ctx)


def _not_a_tensor(
    kernel: Kernel, spec: TensorSpec, value: object, role: str
) -> DtypeError:
    rank = len(spec.axes)
    maker = _MAKERS[rank] if rank < len(_MAKERS) else "tensor"
    return DtypeError(
        f"{kernel.place}: {role} is {kind_of(value)}; expected a tensor. "
        f"Make one by ctx.{maker}({spec.name}, {spec.element.__name__})."
    )


def not_several(kernel: Kernel, out: object) -> DtypeError:
    """Return the error for an `out=` that is no tuple, although there are several outputs."""
    names = ", ".join(spec.name for spec in kernel.outputs)
    given = "one tensor" if is_tensor(out) else kind_of(out)
    return DtypeError(
        f"{kernel.place}: out is {given}; expected a tuple of {len(kernel.outputs)} "
        f"tensors, in the order of the outputs: ({names})."
    )


def resolve(
    kernel: Kernel, tensors: Sequence[Tensor[Any, Any]], guards: Mapping[str, int]
) -> CheckedShapes:
    """Check elements, ranks and dims of tensors; return all lengths and shapes of the call."""
    for spec, tensor in zip(kernel.inputs, tensors, strict=True):
        _check_element(kernel, spec, tensor.element, f"argument '{spec.name}'")
    lengths = resolve_lengths(kernel, [tensor.shape for tensor in tensors], guards)
    return CheckedShapes(
        dims=lengths,
        values=tuple(lengths[dim] for dim in kernel.lengths),
        outputs=tuple(shape_of(spec.axes, lengths) for spec in kernel.outputs),
        temporaries=tuple(shape_of(t.axes, lengths) for t in kernel.temporaries),
    )


def resolve_lengths(
    kernel: Kernel, shapes: Sequence[Shape], guards: Mapping[str, int]
) -> dict[str, int]:
    """Check ranks, dims and subscripts, and return all lengths and the guard scalars.

    `x: f32[m, k]` of shape (4, 8) sets m to 4 and k to 8; later tensors must agree.
    """
    lengths: dict[str, int] = dict(guards)
    # By name of a dim, the argument that has set it: "'x' axis 0", for errors.
    sources: dict[str, str] = dict.fromkeys(guards, "the argument")
    # Dims first, then lengths that are computed from them, then what depends on both.
    for spec, shape in zip(kernel.inputs, shapes, strict=True):
        _match_shape(kernel, spec, shape, lengths, sources)
    derive(kernel, lengths)
    for spec, shape in zip(kernel.inputs, shapes, strict=True):
        _match_computed(kernel, spec, shape, lengths)
    check_ranges(kernel, lengths)
    check_gathers(kernel, lengths)
    return lengths


def array_shape(kernel: Kernel, spec: TensorSpec, array: ArrayLike) -> Shape:
    """Return the shape of an array that a reference is given for the tensor `spec`, checked.

    A record array with the members of another struct is refused; NumPy would match them
    by position.
    """
    role = f"{kernel.place}: argument '{spec.name}'"
    if spec.access == "update":
        _check_changeable(role, array, spec.element)
    shape, element = np.shape(array), spec.element
    if not is_leaf(element):
        actual = getattr(array, "dtype", None)
        if actual != kept(element.DTYPE):
            name = element.__name__
            given = f"has dtype {actual}" if actual else f"is {kind_of(array)}"
            raise DtypeError(
                f"{role} {given}; expected an array of {name}.DTYPE, as "
                f"{name}.pack_array([{name}(...), ...]) makes it."
            )
        return shape
    _check_numbers(role, array, element)
    rank = len(shape) - len(element.shape)
    if rank < 0 or shape[rank:] != element.shape:
        raise ShapeError(
            f"{role} has shape {shape}; expected it to end in {element.shape}, the "
            f"shape of {element.__name__}."
        )
    return shape[:rank]


def _check_changeable(role: str, array: ArrayLike, element: type[Element]) -> None:
    """Refuse what a reference can't change in place."""
    if not isinstance(array, np.ndarray):
        raise DtypeError(
            f"{role} is {kind_of(array)}; expected an array, which is changed in place."
        )
    if not array.flags.writeable:
        raise DtypeError(f"{role} is read-only, and is changed in place: pass a copy.")
    if element.DTYPE.base.kind == "f" and array.dtype.kind in "biu":
        raise DtypeError(
            f"{role} has dtype {array.dtype}, and is changed in place: it can't hold "
            f"every value of {element.__name__}."
        )


def _check_numbers(role: str, array: ArrayLike, element: type[Leaf]) -> None:
    """Refuse an array of no numbers, or of floats where integers are meant."""
    numbers, number = np.asarray(array), element.number
    dtype, name = numbers.dtype, element.__name__
    wanted = "biuf" if number.dtype.kind == "f" else "biu"
    if dtype.kind not in wanted and np.size(array):
        raise DtypeError(f"{role} has dtype {dtype}; expected {name}.")
    if number.bits and numbers.size:
        for extreme in (int(numbers.min()), int(numbers.max())):
            if not number.lowest <= extreme <= number.highest:
                raise DtypeError(f"{role} holds {extreme}, which no {name} can.")


def check_out(
    kernel: Kernel, signature: CheckedShapes, out: Sequence[Tensor[Any, Any] | None]
) -> None:
    """Refuse `out=` tensors of another shape or element type."""
    for spec, shape, tensor in zip(kernel.outputs, signature.outputs, out, strict=True):
        if tensor is None:
            continue
        _check_element(kernel, spec, tensor.element, f"out '{spec.name}'")
        if tensor.shape != shape:
            raise ShapeError(
                f"{kernel.place}: out '{spec.name}' has shape {tensor.shape}; expected "
                f"{_show_axes(kernel, spec, signature.dims)}."
            )


def _check_element(
    kernel: Kernel, spec: TensorSpec, actual: type[Element], role: str
) -> None:
    if actual is not spec.element:
        given, expected = actual.__name__, spec.element.__name__
        # Structs of two modules may have one name.
        if given == expected:
            given = f"{actual.__module__}.{given}"
            expected = f"{spec.element.__module__}.{expected}"
        raise DtypeError(
            f"{kernel.place}: {role} has {given} elements; expected {expected}."
        )


def _match_shape(
    kernel: Kernel,
    spec: TensorSpec,
    shape: Shape,
    lengths: dict[str, int],
    sources: dict[str, str],
) -> None:
    """Refuse a shape of another rank, or with other lengths; add its new dims."""
    known = dict(lengths)
    if len(shape) != len(spec.axes):
        raise ShapeError(
            f"{kernel.place}: argument '{spec.name}' has shape {shape} (rank "
            f"{len(shape)}); expected {_show_axes(kernel, spec, known)} (rank "
            f"{len(spec.axes)})."
        )
    for number, (axis, length) in enumerate(zip(spec.axes, shape, strict=True)):
        if axis in kernel.derived_texts:
            continue  # a computed axis, which `_match_computed` checks
        if isinstance(axis, int):
            expected, reason = axis, f"axis {number} is always {axis}"
        elif axis in lengths:
            expected = lengths[axis]
            reason = f"{axis} is {expected} from {sources[axis]}"
        else:
            lengths[axis] = length
            sources[axis] = f"'{spec.name}' axis {number}"
            expected = min(length, LONGEST)
            reason = f"{axis} is {length}, and a dim is at most {LONGEST}"
        if length != expected:
            raise ShapeError(
                f"{kernel.place}: argument '{spec.name}' has shape {shape}; expected "
                f"{_show_axes(kernel, spec, known)}: {reason}."
            )


def _match_computed(
    kernel: Kernel, spec: TensorSpec, shape: Shape, lengths: Mapping[str, int]
) -> None:
    """Refuse axes that are not as long as the kernel computes: `(d + 31) / 32`."""
    if shape == shape_of(spec.axes, lengths):
        return
    known = (f"{dim} is {lengths[dim]}" for dim in kernel.dims)
    raise ShapeError(
        f"{kernel.place}: argument '{spec.name}' has shape {shape}; expected "
        f"{_show_axes(kernel, spec, lengths)}: {', '.join(known)}."
    )


def _show_axes(kernel: Kernel, spec: TensorSpec, lengths: Mapping[str, int]) -> str:
    """Return axes as text, with the lengths that are known: `(k=4, n)`."""
    words = [show_axis(kernel, axis, lengths) for axis in spec.axes]
    return f"({', '.join(words)}{',' if len(words) == 1 else ''})"
