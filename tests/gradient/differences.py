"""An oracle for gradients: central differences of the forward reference, in float64.

`Case` is a kernel with what it is called with; `worst` is how far its gradient is from
what the differences give, element by element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.compiler import CompiledModule, Compiler
from kerngen.emit.binding import emit_binding
from kerngen.emit.kernel_plan import plan_kernels
from kerngen.emit.python_names import module_names
from kerngen.gradient import derive
from kerngen.ir import nodes as ir
from kerngen.ir.memory import Leaf, Struct
from kerngen.ir.module import Module
from kerngen.ir.staging.passes import form_stages
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.jit.memory import installed
from kerngen.plan.tree import ModulePlan
from kerngen.plan.write import plan_text
from kerngen.runtime.calls.choices import kernel_of as kernel_of_function
from kerngen.runtime.calls.kernel import Kernel as RuntimeKernel
from kerngen.schedule.program import KernelProgram
from kerngen.schedule.schedule_kernel import lower
from kerngen.source.text import Source
from kerngen.syntax.library import Library
from tests.compile import checked

STEP: Final = 1e-6
"""Of central differences: of smooth values of about 1 their error is some 1e-10."""

Array: TypeAlias = NDArray[Any]
Run: TypeAlias = Callable[[Mapping[str, Any]], list[Array]]


@cache
def checked_file(path: Path) -> Module:
    """Return a file's typed kernels."""

    def find(name: str) -> Source:
        return Source(name, (path.parent / name).read_text("utf-8"))

    return Compiler(Library(find, [path.name])).module(path.name)


def kernel_of(module: Module, name: str) -> ir.Kernel:
    """Return the kernel of a name."""
    return next(kernel for kernel in module.kernels if kernel.name == name)


def inputs_by(kernel: ir.Kernel) -> tuple[str, ...]:
    """Return the parameters that gradients of a kernel can be by."""
    tensors = tuple(
        t.name
        for t in kernel.tensors
        if t.role is ir.Role.INPUT and _is_real(t.element)
    )
    floats = (
        p.name
        for p in kernel.parameters
        if isinstance(p.memory, Leaf) and _is_real(p.memory.type)
    )
    return (*tensors, *floats)


def is_differentiable(kernel: ir.Kernel) -> bool:
    """Whether a kernel computes floats from tensors of floats, and nothing in place."""
    roles = {t.role for t in kernel.tensors if _is_real(t.element)}
    in_place = any(t.role is ir.Role.UPDATE for t in kernel.tensors)
    return roles >= {ir.Role.INPUT, ir.Role.OUTPUT} and not in_place


def _is_integer(parameter: ir.Parameter) -> bool:
    return parameter.memory.spelling in {"u32", "i32"}


def _is_real(element: ValueType | Struct) -> bool:
    return not isinstance(element, Struct) and scalar_of(element) is Scalar.F32


_LENGTHS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a // b,
}  # fmt: skip


def _length(value: ir.Expr, lengths: Mapping[str, int]) -> int:
    """Return an axis that is computed from lengths."""
    match value:
        case ir.Binary(op=op, left=left, right=right):
            return _LENGTHS[op](_length(left, lengths), _length(right, lengths))
        case ir.DimValue(name=name) | ir.UniformValue(name=name):
            return lengths[name]
        case ir.Constant(value=number):
            return int(number)
        case _:
            raise AssertionError(value)


def _components(type_: ValueType | Struct) -> tuple[int, ...]:
    """Return the shape of one element: (3,) of a vec3f."""
    match type_:
        case Vector(width=width):
            return (width,)
        case Matrix(columns=columns, rows=rows):
            return (columns, rows)
        case _:
            return ()


def program(module: Module, kernel: ir.Kernel) -> KernelProgram:
    """Lower a kernel that is not in its module."""
    alone = replace(module, kernels=(kernel,), warnings=())
    return lower(form_stages(kernel), alone)


def compiled(module: Module, *kernels: ir.Kernel) -> CompiledModule:
    """Compile kernels for their references, without shaders."""
    alone = replace(module, kernels=kernels, warnings=())
    programs = [
        KernelProgram(form_stages(kernel), (), lambda _: (), {}) for kernel in kernels
    ]
    planned = plan_kernels(replace(alone, origins=(module, *module.origins)), programs)
    binding = emit_binding(alone, planned, "0" * 64, formatted=False)
    plan = ModulePlan(module.path, "0" * 16, tuple(each.plan for each in planned))
    stem = Path(module.path).stem
    files = {f"wgsl/{stem}/{stem}.plan": plan_text(plan).encode()}
    return CompiledModule(alone, (), binding, files)


@contextmanager
def references(
    module: Module, *kernels: ir.Kernel
) -> Generator[list[Callable[..., Any]]]:
    """Yield the references of some kernels, for a block."""
    source = compiled(module, *kernels)
    names = module_names(source.module).kernels
    with installed([source]) as modules:
        made = modules[module.path]
        yield [getattr(made, names[k.name].reference) for k in kernels]


@contextmanager
def runtimes(module: Module, *kernels: ir.Kernel) -> Generator[list[RuntimeKernel]]:
    """Yield what a runtime knows of some kernels, for a block."""
    source = compiled(module, *kernels)
    names = module_names(source.module).kernels
    with installed([source]) as modules:
        made = modules[module.path]
        yield [
            kernel_of_function(getattr(made, names[k.name].function)) for k in kernels
        ]


@dataclass(frozen=True)
class Case:
    """A kernel, what its gradient is by, and what it is called with.

    Lengths that `sizes` does not say are from 2 to 5, floats from 0.2 to 1.8.
    """

    module: Module
    kernel: ir.Kernel
    by: tuple[str, ...]
    given: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int = 0

    def derived(self) -> ir.Kernel:
        """Return the derived kernel."""
        functions = {f.name: f for f in self.module.functions}
        name = f"{self.kernel.name}_derived"
        return derive(
            self.kernel, name=name, by=self.by, given=self.given, functions=functions
        )

    def worst(self, gradient: ir.Kernel | None = None) -> float:
        """Return how far a gradient is from differences, relative to the largest."""
        gradient = gradient or self.derived()
        with references(self.module, self.kernel, gradient) as (forward, backward):
            expected = self._expected(forward)
            found = self._results(gradient, forward, backward)
        return max(map(_distance, found, expected))

    def results(self) -> list[Array]:
        """Return what the derived kernel's reference gives."""
        gradient = self.derived()
        with references(self.module, self.kernel, gradient) as (forward, backward):
            return self._results(gradient, forward, backward)

    def forward_results(self) -> list[Array]:
        """Return what the kernel's own reference gives."""
        with references(self.module, self.kernel) as (forward,):
            return self._run(forward, self.arguments())

    # Arguments

    def lengths(self) -> dict[str, int]:
        """Return the length of every dim."""
        usual = [3, 4, 2, 5, 3, 2, 4]
        lengths = {
            dim: self.sizes.get(dim, usual[place % 7])
            for place, dim in enumerate(self.kernel.dims)
        }
        known = self._integers() | lengths
        equal = (each.condition for each in self.kernel.requires if each.implied)
        for condition in equal:
            assert isinstance(condition, ir.Binary)
            assert isinstance(condition.left, ir.DimValue)
            lengths[condition.left.name] = _length(condition.right, known)
        return lengths

    def _integers(self) -> dict[str, int]:
        """Return the scalars that lengths may be computed from."""
        found: dict[str, int] = {}
        for parameter in filter(_is_integer, self.kernel.parameters):
            default = parameter.default
            usual = default if isinstance(default, int) else 2
            found[parameter.name] = self.values.get(parameter.name, usual)
        return found

    def arguments(self) -> dict[str, Any]:
        """Return the value of every parameter."""
        rng, lengths = np.random.default_rng(self.seed), self.lengths()
        for dim in self.kernel.derived:
            with suppress(KeyError):  # of scalars: no axis of an input
                lengths[dim.name] = _length(dim.value, lengths)
        found: dict[str, Any] = {}
        for tensor in self.kernel.tensors:
            if tensor.role is ir.Role.OUTPUT:
                continue
            shape = [e if isinstance(e, int) else lengths[e] for e in tensor.extents]
            shape += _components(tensor.element)
            if _is_real(tensor.element):
                found[tensor.name] = rng.uniform(0.2, 1.8, shape)
            else:
                kind = np.uint32 if tensor.element is Scalar.U32 else np.int32
                found[tensor.name] = rng.integers(0, 4, shape).astype(kind)
        for parameter in self.kernel.parameters:
            leaf = parameter.memory
            assert isinstance(leaf, Leaf)
            usual: Any = 0.7
            if not isinstance(leaf.type, Scalar):
                usual = rng.uniform(0.2, 1.8, _components(leaf.type))
            default = parameter.default
            found[parameter.name] = usual if default is None else default
        return found | self._integers() | dict(self.values)

    def weights(self, values: list[Array]) -> list[Array | None]:
        """Return the gradient by every output; by integers there is none."""
        rng = np.random.default_rng(self.seed + 1)
        outputs = (t for t in self.kernel.tensors if t.role is ir.Role.OUTPUT)
        return [
            rng.normal(size=value.shape) if _is_real(tensor.element) else None
            for tensor, value in zip(outputs, values, strict=True)
        ]

    # Calls

    def _run(
        self, forward: Callable[..., Any], values: Mapping[str, Any]
    ) -> list[Array]:
        tensors = [t for t in self.kernel.tensors if t.role is not ir.Role.OUTPUT]
        scalars = {p.name: values[p.name] for p in self.kernel.parameters}
        return _listed(
            forward(*(np.asarray(values[t.name]) for t in tensors), **scalars)
        )

    def _results(
        self,
        gradient: ir.Kernel,
        forward: Callable[..., Any],
        backward: Callable[..., Any],
    ) -> list[Array]:
        values = self.arguments()
        first = self._run(forward, values)
        outputs = [t.name for t in self.kernel.tensors if t.role is ir.Role.OUTPUT]
        known = dict(values) | dict(zip(outputs, first, strict=True))
        known |= {f"{dim}_len": size for dim, size in self.lengths().items()}
        names = {t.name for t in self.kernel.tensors}
        for name, weight in zip(outputs, self.weights(first), strict=True):
            own = f"d{name}"
            known[f"{own}_2" if own in names else own] = weight
        tensors = [t for t in gradient.tensors if t.role is not ir.Role.OUTPUT]
        scalars = {p.name: known[p.name] for p in gradient.parameters}
        return _listed(
            backward(*(np.asarray(known[t.name]) for t in tensors), **scalars)
        )

    def _expected(self, forward: Callable[..., Any]) -> list[Array]:
        values = self.arguments()

        def run(changed: Mapping[str, Any]) -> list[Array]:
            return self._run(forward, changed)

        weights = self.weights(run(values))
        return [_by_differences(run, values, name, weights) for name in self.by]


def results_of(text: str, by: tuple[str, ...], **values: object) -> list[Array]:
    """Return the gradients of a text's first kernel, called with some values."""
    module = checked(text)
    sizes = {
        dim: np.asarray(values[t.name]).shape[axis]
        for t in module.kernels[0].tensors
        if t.name in values
        for axis, dim in enumerate(t.extents)
        if isinstance(dim, str)
    }
    case = Case(module, module.kernels[0], by, values=values, sizes=sizes)
    return case.results()


def weights_of(text: str, *shape: int) -> Array:
    """Return the gradient by its only output that `results_of` gives to a kernel."""
    module = checked(text)
    case = Case(module, module.kernels[0], ())
    (weights,) = case.weights([np.zeros(shape)])
    assert weights is not None
    return weights


def _listed(result: Any) -> list[Array]:
    results: list[Any] = [*result] if issubclass(type(result), tuple) else [result]
    return [np.asarray(each) for each in results]


def _distance(found: Array, expected: Array) -> float:
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-3)
    return float(np.abs(found - expected).max(initial=0.0)) / scale


def _difference(above: Array, below: Array) -> Array:
    """Return `above - below`, 0 for what is infinite on both sides: a maximum of nothing."""
    found = np.zeros(above.shape)
    return np.subtract(above, below, out=found, where=above != below)


def _by_differences(
    run: Run, values: Mapping[str, Any], name: str, weights: list[Array | None]
) -> Array:
    """Return the gradient of the weighted sum of all outputs."""
    at = np.asarray(values[name], np.float64)
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        sides: list[list[Array]] = []
        for step in (STEP, -STEP):
            moved = at.copy()
            moved[place] += step
            changed: Any = moved if at.shape else float(moved)
            sides.append(run({**values, name: changed}))
        gradient[place] = sum(
            float((weight * _difference(above, below)).sum())
            for weight, above, below in zip(weights, *sides, strict=True)
            if weight is not None
        )
    return gradient / (2 * STEP)
