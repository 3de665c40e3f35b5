"""Kernels that read and write parts of random structs, on the GPU and in references."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.memory import Struct, structs_in
from kerngen.runtime.calls.kernel import Kernel
from tests.budget import examples
from tests.compile import built_module
from tests.emit.declared import distinct

from .drawn import Drawing
from .paths import Path, path_in

COUNT = 5
READS = 4

TENSORS = Drawing(halves=True, uniform=False).structs(3)
PARAMETERS = Drawing(halves=True, uniform=True).structs(3)


def items_of(struct: Struct) -> Iterator[str]:
    """Yield the text of a struct and of those in it."""
    for each in dict.fromkeys(structs_in(struct)):
        fields: list[str] = []
        for member in each.members:
            given_ = {"@align": member.align, "@size": member.size}
            attributes = "".join(f"{n}({v}) " for n, v in given_.items() if v)
            fields.append(f"{attributes}{member.name}: {member.type.spelling}")
        yield f"struct {each.name} {{ {', '.join(fields)} }}\n"


def numbers(dtype: np.dtype[np.void], count: int, rng: np.random.Generator) -> Any:
    """Return records of numbers that f16 holds too."""
    records = np.zeros(count, dtype)

    def fill(view: NDArray[Any]) -> None:
        for name in view.dtype.names or ():
            fill(view[name])
        if view.dtype.names is None:
            view[...] = rng.integers(0, 200, view.shape).astype(view.dtype)

    fill(records)
    return records


def check(
    contexts: list[gpu.Context], of_tensor: Struct, of_parameter: Struct, bits: int
) -> None:
    random, rng = Random(bits), np.random.default_rng(bits)
    reads = [("t[i]", path_in(of_tensor, random)) for _ in range(READS)]
    reads += [("u", path_in(of_parameter, random)) for _ in range(READS)]
    target = path_in(of_tensor, random, is_target=True)
    outputs = ", ".join(f"y{n}: {p.type.spelling}[n]" for n, (_, p) in enumerate(reads))
    body = "".join(f"    y{n}[i] = {x}{p.text};\n" for n, (x, p) in enumerate(reads))
    tensor, parameter = of_tensor.name, of_parameter.name
    head = f"kernel f(mut w: {tensor}[n], t: {tensor}[n], u: {parameter}) -> {outputs}"
    body += f"    w[i]{target.text} = t[i]{target.text};\n"
    structs = "".join((*items_of(of_tensor), *items_of(of_parameter)))
    with built_module(f"{structs}{head} {{\n{body}}}\n") as module:
        (kernel,) = (x for x in vars(module).values() if isinstance(x, Kernel))
        cls, of_u = getattr(module, tensor), getattr(module, parameter)
        read, old = (numbers(cls.DTYPE, COUNT, rng) for _ in range(2))
        (u,) = of_u.unpack_array(numbers(of_u.DTYPE, 1, rng))
        for ctx in contexts:
            written = ctx.tensor(old, cls)
            made = kernel.launch(ctx, (written, ctx.tensor(read, cls)), (u,))
            values = cls.unpack_array(read)
            for (name, path), found in zip(reads, made, strict=True):
                wanted = [
                    path.follow(u if name == "u" else t, i)
                    for i, t in enumerate(values)
                ]
                np.testing.assert_array_equal(
                    found.numpy(), wanted, f"{name}{path.text}"
                )
            check_written(
                target, values, cls.unpack_array(old), cls.unpack_array(written.numpy())
            )


def check_written(target: Path, values: Any, old: Any, new: Any) -> None:
    """Hold that the target has the new value, and all else that it had."""
    for i, (value, before, after) in enumerate(zip(values, old, new, strict=True)):
        assert target.follow(after, i) == target.follow(value, i), target.text
        changed = np.frombuffer(before.pack(), np.uint8) != np.frombuffer(
            after.pack(), np.uint8
        )
        assert np.count_nonzero(changed) <= np.size(target.follow(after, i)) * 4


def test_parts_of_structs_are_read_and_written(ctx: gpu.Context) -> None:
    with gpu.open(adapter="reference") as reference:

        @seed(0)
        @settings(
            max_examples=examples(60),
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(TENSORS, PARAMETERS, st.integers(0, 2**32 - 1))
        def launch(drawn: Struct, other: Struct, bits: int) -> None:
            of_tensor, of_parameter = distinct(drawn), distinct(other)
            assert isinstance(of_tensor, Struct)
            assert isinstance(of_parameter, Struct)
            check([ctx, reference], of_tensor, of_parameter, bits)

        launch()
