"""Kernels that return lets, too, which their gradients are given.

`gradient of layernorm by x given mean;` wants `mean`, a let of `layernorm`.  So there is
`layernorm_kept`, which computes the same and returns it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kerngen.ir.nodes import Expr, Kernel, Load, Role, Tensor
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children
from kerngen.source.text import Span


def lets_of(kernel: Kernel) -> dict[str, Tensor]:
    """Return the lets of a kernel that can be kept, by name: numbers with a fraction."""
    targets = (statement.target for statement in kernel.body)
    return {
        target.name: target
        for target in targets
        if target.role is Role.LET and target.element is Scalar.F32
    }


def kept_name(kernel: str) -> str:
    """Return the name of the kernel that returns lets of another."""
    return f"{kernel}_kept"


def kept(kernel: Kernel, names: Iterable[str], span: Span) -> Kernel:
    """Return a kernel with some of its lets as further outputs."""
    lets = lets_of(kernel)
    outputs = {
        lets[name]: replace(lets[name], role=Role.OUTPUT)
        for name in dict.fromkeys(names)
    }

    def visit(expr: Expr) -> Expr:
        expr = map_children(expr, visit)
        if isinstance(expr, Load) and expr.tensor in outputs:
            return replace(expr, tensor=outputs[expr.tensor])
        return expr

    body = tuple(
        replace(
            s,
            target=outputs.get(s.target, s.target),
            value=visit(s.value),
            text=s.text.removeprefix("let ") if s.target in outputs else s.text,
        )
        for s in kernel.body
    )
    name = kept_name(kernel.name)
    signature = kernel.signature.replace(kernel.name, name, 1)
    listed = ", ".join(f"`{tensor.name}`" for tensor in outputs)
    return replace(
        kernel,
        name=name,
        tensors=(*kernel.tensors, *outputs.values()),
        body=body,
        schedules=(),
        signature=", ".join((signature, *(_text(kernel, t) for t in outputs))),
        doc=f"{kernel.doc}\n\nReturns {listed}, too.".strip(),
        span=span,
        gradient=None,
    )


def _text(kernel: Kernel, tensor: Tensor) -> str:
    texts = {dim.name: dim.text for dim in kernel.derived}
    axes = ", ".join(texts.get(str(axis), str(axis)) for axis in tensor.extents)
    return f"{tensor.name}: f32[{axes}]"
