"""Variables: tensors with the graph of how they were computed.

A function of this package computes its value at once, by recording kernels, and makes an
`Edge` for each group of its inputs, which turns a gradient by the value into the gradients
by those inputs.  `backward` walks the edges from a loss to the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.nn.errors import GraphError
from kerngen.runtime import DtypeError, Tensor, f32
from kerngen.runtime.tensor import is_tensor
from kerngen.runtime.values.kinds import kind_of

AnyTensor: TypeAlias = Tensor[f32, Any]
Value: TypeAlias = "Variable | AnyTensor"
Pull: TypeAlias = Callable[[AnyTensor, Sequence[AnyTensor | None]], Sequence[AnyTensor]]
"""A function from the gradient by a value to the gradients by some inputs.

The second argument has a destination for each: a tensor of the input's shape, or None for
a new one.  A pull may ignore a destination; the caller copies then.
"""

_numbers = count()


@final
@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that an edge needs, with its write count at that moment."""

    tensor: Tensor[Any, Any]
    writes: int
    losses: int

    @property
    def is_same(self) -> bool:
        """Whether the tensor has not been written since."""
        now = (self.tensor.writes, self.tensor.losses)
        return now == (self.writes, self.losses)


@final
@dataclass(frozen=True, slots=True)
class Walked:
    """The parameters to which the edges led that a backward walk has used up.

    They led to some of `parameters`, of all if None; if `others`, perhaps also to other
    parameters.
    """

    parameters: Collection[Variable] | None
    others: bool

    def led_to(self, wanted: Collection[Variable] | None) -> bool:
        """Whether edges that are used up may have led to wanted parameters."""
        if wanted is None or self.parameters is None or self.others:
            return True
        return any(each in wanted for each in self.parameters)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """An edge of the graph, from a value to some of its inputs.

    `pull` computes the gradients by these inputs. `kept` are the tensors that it reads,
    with their write counts when the edge was made: once one is overwritten, the pull would
    give wrong gradients.
    """

    inputs: tuple[Variable, ...]
    pull: Pull
    kept: tuple[SavedTensor, ...]


@final
class Variable:
    """A tensor in a computation graph.

    `tensor` is its value.  A parameter has a `gradient`, a tensor of the same shape that
    `backward` writes; a value computed from parameters has edges to them.  Any other is
    a constant.  Variables are numbered in the order in which they were computed.
    """

    __slots__ = ("edges", "gradient", "number", "tensor", "walked")

    def __init__(
        self,
        tensor: AnyTensor,
        *,
        gradient: AnyTensor | None = None,
        edges: tuple[Edge, ...] = (),
    ) -> None:
        """Describe a value; parameters are made by `parameter`."""
        self.tensor = tensor
        self.gradient = gradient
        self.edges = edges
        self.number = next(_numbers)
        self.walked: tuple[Walked, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        """The rank."""
        return self.tensor.ndim

    @property
    def needs_gradient(self) -> bool:
        """Whether it is a parameter, or computed from one."""
        return self.gradient is not None or bool(self.edges or self.walked)

    def spend(self, edges: Collection[Edge], walked: Walked) -> None:
        """Remove edges that a backward walk has used up."""
        self.edges = tuple(each for each in self.edges if each not in edges)
        self.walked = (*self.walked, walked)

    def numpy(self) -> NDArray[np.float32]:
        """Submit recorded work, and return the elements as a new array."""
        return self.tensor.numpy()

    def item(self) -> float:
        """Submit recorded work, and return the only element."""
        return float(self.tensor.item())

    def __bool__(self) -> bool:
        """Return the truth of the tensor, or raise as it does."""
        return bool(self.tensor)

    def __repr__(self) -> str:
        """Return the variable's role and tensor as text."""
        role = "parameter" if self.gradient is not None else "variable"
        return f"Variable({role}, {self.tensor!r})"


def parameter(tensor: AnyTensor, gradient: AnyTensor) -> Variable:
    """Return a parameter: a tensor, and the tensor that `backward` writes its gradient to.

    Raises:
        DtypeError: If one is no tensor, or holds other elements than f32.
        GraphError: If their shapes differ.
    """
    check_tensor(tensor)
    check_tensor(gradient)
    if tensor.shape != gradient.shape:
        raise GraphError(
            f"parameter: the gradient has shape {gradient.shape}; expected "
            f"{tensor.shape}, as the tensor."
        )
    return Variable(tensor, gradient=gradient)


def as_variable(value: Value) -> Variable:
    """Return a value as a variable: a tensor is a constant.

    Raises:
        DtypeError: If it is neither, or holds other elements than f32.
    """
    if isinstance(value, Variable):
        return value
    check_tensor(value)
    return Variable(value)


def check_tensor(value: object) -> None:
    """Raise DtypeError unless a value is a tensor of f32."""
    if not is_tensor(value):
        raise DtypeError(
            f"Expected a Variable or a Tensor, got {kind_of(value)}. Make a "
            f"tensor by ctx.tensor(array, f32)."
        )
    if value.element is not f32:
        raise DtypeError(
            f"Expected f32 elements, got {value.element.__name__}: gradients flow "
            f"through f32 alone."
        )


def edge(
    value: Variable,
    pull: Callable[[AnyTensor, AnyTensor | None], AnyTensor],
    *kept: Tensor[Any, Any],
) -> Edge:
    """Return the edge to a single input; `kept` are the tensors that `pull` reads."""

    def pull_one(dy: AnyTensor, out: Sequence[AnyTensor | None]) -> Sequence[AnyTensor]:
        return (pull(dy, out[0]),)

    return joint_edge((value,), pull_one, *kept)


def joint_edge(
    values: tuple[Variable, ...], pull: Pull, *kept: Tensor[Any, Any]
) -> Edge:
    """Return the edge to several inputs; `kept` are the tensors that `pull` reads."""
    known = (SavedTensor(tensor, tensor.writes, tensor.losses) for tensor in kept)
    return Edge(values, pull, tuple(known))


def computed(tensor: AnyTensor, *edges: Edge) -> Variable:
    """Return a computed value, with only those edges that lead to parameters."""
    needed = tuple(e for e in edges if any(v.needs_gradient for v in e.inputs))
    return Variable(tensor, edges=needed)
