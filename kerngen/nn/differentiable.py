"""User kernels as differentiable functions of variables.

The gradients are kernels, too, derived by `kernel g = gradient of f by x;`.  The plan of
`g` records its derivation: the kernel `f`, the inputs that it is by, and the origin of each
argument.  So this module contains no formula of any kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import unwrap
from typing import Any, TypeAlias, final

from kerngen.nn.errors import GraphError
from kerngen.nn.variable import (
    AnyTensor,
    Edge,
    Pull,
    Variable,
    computed,
    joint_edge,
)
from kerngen.runtime import DtypeError, Tensor, f32
from kerngen.runtime.calls.choices import kernel_of
from kerngen.runtime.calls.kernel import KERNEL, Kernel

KernelFunction: TypeAlias = Callable[..., Any]


def differentiable(
    function: KernelFunction, *gradients: KernelFunction
) -> Differentiable:
    """Return a kernel as a function of variables, to be used like those of `nn`.

        softplus = nn.differentiable(kernels.softplus)
        y = softplus(nn.linear(x, p["weight"]), beta=2.0)

    It takes the kernel's arguments, with variables or tensors for its tensors, and returns
    a variable for each output of f32, and a tensor for each other one.

    Args:
        function: The generated function of a kernel.
        gradients: The functions of its gradients; by default all in its module.

    Raises:
        DtypeError: If one is no function of a kernel.
        GraphError: If there is no gradient, or one is of another kernel.
    """
    for each in (function, *gradients):
        if not hasattr(each, KERNEL):
            raise DtypeError(
                f"differentiable: expected a kernel's function, as in "
                f"kerngen_kernels.softmax.softmax, got {each!r}."
            )
    name = kernel_of(function).name
    found = gradients or tuple(_gradients_in(function.__module__, name))
    if not found:
        raise GraphError(
            f"{name}: its module has no gradient of it. Add 'kernel {name}_gradient = "
            f"gradient of {name} by ...;' to its source, or pass gradients of another "
            f"module: nn.differentiable({name}, {name}_gradient)."
        )
    for each in found:
        _check_gradient(kernel_of(each), name)
    return Differentiable(function, found)


def _gradients_in(module: str, name: str) -> Iterator[KernelFunction]:
    for function in _functions_in(module):
        gradient = kernel_of(function).gradient
        if gradient is not None and gradient.kernel == name:
            yield function


def _functions_in(module: str) -> Iterator[KernelFunction]:
    """Yield the functions of kernels of a module, in the order of its source."""
    values = [*vars(sys.modules[module]).values()]
    return (value for value in values if hasattr(value, KERNEL))


def _check_gradient(kernel: Kernel, name: str) -> None:
    if kernel.gradient is None:
        raise GraphError(
            f"{kernel.place} is not derived from another kernel. Derive it: 'kernel "
            f"{kernel.name} = gradient of {name} by ...;'."
        )
    if kernel.gradient.kernel != name:
        raise GraphError(
            f"{kernel.place} is the gradient of '{kernel.gradient.kernel}'; expected "
            f"one of '{name}'."
        )


@final
@dataclass(frozen=True, slots=True)
class Differentiable:
    """A kernel with its gradients, called with variables."""

    function: KernelFunction
    gradients: tuple[KernelFunction, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the kernel's outputs: a variable, or a tuple of them.

        Raises:
            GraphError: If `out` is given, if a scalar is a variable, or if a gradient is
                missing that is needed.
        """
        kernel = kernel_of(self.function)
        if kwargs.get("out") is not None:
            raise GraphError(
                f"{kernel.name}: a variable is a new tensor, so there is no 'out'."
            )
        for scalar in kernel.scalars:
            if isinstance(kwargs.get(scalar.name), Variable):
                raise GraphError(
                    f"{kernel.name}: '{scalar.name}' is a scalar, and so a constant here; "
                    f"to learn it, declare it as a tensor, '{scalar.name}: f32[]'."
                )
        inputs = dict(zip((spec.name for spec in kernel.inputs), args, strict=False))
        values = {**self._defaults, **inputs, **kwargs}
        chosen = self._chosen(kernel, values)
        forward = self._forward(kernel, chosen)
        called = dict(
            zip(_arguments(kernel), _arguments(kernel_of(forward)), strict=True)
        )
        # The kernel's function also refuses arguments that don't fit.
        result = forward(
            *map(_plain, args),
            **{called.get(n, n): _plain(v) for n, v in kwargs.items()},
        )
        outputs = [spec.name for spec in kernel.outputs]
        lets = [spec.name for spec in kernel_of(forward).outputs[len(outputs) :]]
        names = (*outputs, *lets)
        results = dict(zip(names, result if len(names) > 1 else (result,), strict=True))
        call = _Call(kernel, values, results)
        found = [call.output(name, chosen) for name in outputs]
        return tuple(found) if len(found) > 1 else found[0]

    @property
    def _defaults(self) -> dict[str, Any]:
        return getattr(unwrap(self.function), "__kwdefaults__", None) or {}

    def _chosen(
        self, kernel: Kernel, values: Mapping[str, Any]
    ) -> Sequence[tuple[Kernel, tuple[str, ...]]]:
        """Return the gradients that a call needs, each with the inputs that it is for.

        Until all inputs have one, the gradient by the most inputs is taken: parts that
        they share are computed once. At a tie, it is the one that is given most results
        of the forward call, which it need not compute again.
        """
        left = [
            name
            for name, value in values.items()
            if isinstance(value, Variable) and value.needs_gradient
        ]
        chosen: list[tuple[Kernel, tuple[str, ...]]] = []
        while left:
            best = max(
                map(kernel_of, self.gradients),
                key=lambda g: (len(_by(g, left)), len(g.derivation.given)),
            )
            names = _by(best, left)
            if not names:
                raise GraphError(
                    f"{kernel.name}: there is no gradient by '{left[0]}', behind which "
                    f"is a parameter. Add 'kernel {kernel.name}_{left[0]}_gradient = "
                    f"gradient of {kernel.name} by {left[0]};'."
                )
            chosen.append((best, names))
            left = [name for name in left if name not in names]
        return chosen

    def _forward(
        self, kernel: Kernel, chosen: Sequence[tuple[Kernel, tuple[str, ...]]]
    ) -> KernelFunction:
        """Return the function to call: the kernel's, or its `_kept` form.

        `NAME_kept` returns the `let`s, too, that the chosen gradients are given.
        """
        given = {
            gradient.derivation.argument(name)
            for gradient, _ in chosen
            for name in gradient.derivation.given
        }
        if given.issubset(spec.name for spec in kernel.outputs):
            return self.function
        name = f"{kernel.name}_kept"
        for gradient in self.gradients:
            for function in _functions_in(gradient.__module__):
                if kernel_of(function).name == name:
                    return function
        raise GraphError(
            f"{kernel.name}: the kernel '{name}' is missing in its module."
        )


@final
@dataclass(frozen=True, slots=True)
class _Call:
    """A call that was made: its arguments, and its outputs and kept lets, by name."""

    kernel: Kernel
    values: Mapping[str, Any]
    results: Mapping[str, Tensor[Any, Any]]

    def output(
        self, name: str, chosen: Sequence[tuple[Kernel, tuple[str, ...]]]
    ) -> Variable | Tensor[Any, Any]:
        """Return output `name` of the call: as a Variable, or as a Tensor if it is not f32.

        `chosen` has the gradient kernels to use, each with the inputs that it is by; the
        Variable has an edge in the graph to the inputs of each.
        """
        tensor = self.results[name]
        if tensor.element is not f32:
            return tensor
        edges = (self._edge(name, gradient, by) for gradient, by in chosen)
        return computed(tensor, *(each for each in edges if each is not None))

    def _edge(self, output: str, gradient: Kernel, by: tuple[str, ...]) -> Edge | None:
        """Return the edge from one output, or None if the inputs don't affect it.

        A kernel of several outputs has an edge for each, whose pull passes zeros as the
        gradients by the others: gradients are linear in those, so their sum is right.
        """
        about = gradient.derivation
        sources = {tensor: of for of, tensor in about.from_}
        if output not in sources.values():
            return None
        known = {
            spec.name: self._tensor(about.argument(spec.name))
            for spec in gradient.inputs
            if spec.name not in sources
        }
        numbers = self._numbers(gradient)
        pull = self._pull(gradient, output, by, known, numbers)
        return joint_edge(tuple(self.values[n] for n in by), pull, *known.values())

    def _pull(
        self,
        gradient: Kernel,
        output: str,
        by: tuple[str, ...],
        known: Mapping[str, AnyTensor],
        numbers: tuple[Any, ...],
    ) -> Pull:
        """Return the function that calls the gradient's kernel.

        `known` are its tensors but the gradients by outputs, `numbers` its scalars.
        """
        about = gradient.derivation
        sources = {tensor: of for of, tensor in about.from_}
        shapes = {of: self.results[of].shape for of in sources.values()}
        inputs_of = {tensor: of for of, tensor in about.by}

        def pull(dy: AnyTensor, out: Sequence[AnyTensor | None]) -> Sequence[AnyTensor]:
            def argument(name: str) -> AnyTensor:
                of = sources.get(name)
                if of is None:
                    return known[name]
                return dy if of == output else dy.ctx.zeros(shapes[of], f32)

            wanted = dict(zip(by, out, strict=True))
            names = [inputs_of[spec.name] for spec in gradient.outputs]
            results = gradient.launch(
                None,
                tuple(argument(spec.name) for spec in gradient.inputs),
                numbers,
                tuple(wanted.get(name) for name in names),
            )
            found = dict(zip(names, results, strict=True))
            return [found[name] for name in by]

        return pull

    def _tensor(self, name: str) -> AnyTensor:
        """Return an argument of the call, or one of its results, as a plain tensor."""
        tensor = self.results.get(name)
        return _plain(self.values[name]) if tensor is None else tensor

    def _numbers(self, gradient: Kernel) -> tuple[Any, ...]:
        """Return the scalars of a gradient: those of the call, and lengths."""
        about = gradient.derivation
        dims = {scalar: dim for dim, scalar in about.lengths}
        return tuple(
            (
                self._length(dims[spec.name])
                if spec.name in dims
                else self.values[about.argument(spec.name)]
            )
            for spec in gradient.scalars
        )

    def _length(self, dim: str) -> int:
        """Return the length of a dim, which is an axis of some argument."""
        shapes: Iterator[tuple[tuple[str | int, ...], tuple[int, ...]]] = (
            (spec.axes, _plain(self.values[spec.name]).shape)
            for spec in self.kernel.inputs
        )
        return next(
            length
            for axes, shape in shapes
            for axis, length in zip(axes, shape, strict=True)
            if axis == dim
        )


def _plain(value: Any) -> Any:
    return value.tensor if isinstance(value, Variable) else value


def _arguments(kernel: Kernel) -> list[str]:
    return [*(x.name for x in kernel.inputs), *(x.name for x in kernel.scalars)]


def _by(gradient: Kernel, wanted: Collection[str]) -> tuple[str, ...]:
    """Return those of the wanted inputs that a gradient is by."""
    return tuple(name for name, _ in gradient.derivation.by if name in wanted)
