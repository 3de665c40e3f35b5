"""References of random kernels, against the interpreter, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.emit.python_names import module_names
from kerngen.emit.reference import write_reference
from kerngen.emit.writer import Writer
from kerngen.ir.nodes import Extent, Kernel, Module
from kerngen.runtime import hostmath
from kerngen.runtime import reference as ref
from tests.emit.interpreter import Interpreter, TooLargeError
from tests.language.random_kernels import SCALARS, TENSORS, draw_arrays, kernels


def printed(kernel: Kernel) -> str:
    """Return the kernel's reference."""
    module = Module("random.kern", "", (), (kernel,))
    writer = Writer()
    write_reference(writer, kernel, module_names(module), {})
    return writer.text


def run_reference(text: str, arrays: list[Any], scalars: Mapping[str, Any]) -> Any:
    scope: dict[str, Any] = {"np": np, "ref": ref, "hostmath": hostmath}
    scope |= {"NDArray": NDArray, "Any": Any}
    exec(text, scope)
    return scope["random_reference"](*arrays, **scalars)


@given(
    kernels(),
    st.tuples(*[st.integers(1, 3)] * 3),
    st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_a_reference_means_what_the_kernel_means(
    kernel: Kernel, sizes: tuple[int, int, int], seed: int
) -> None:
    lengths: dict[Extent, int] = {**dict(zip("mkn", sizes, strict=True)), 3: 3}
    ours, theirs = draw_arrays(lengths, seed), draw_arrays(lengths, seed)
    try:
        expected = Interpreter(kernel, theirs, SCALARS).run()
    except TooLargeError:
        assume(False)
        return
    text = printed(kernel)
    result = run_reference(text, [ours[tensor.name] for tensor in TENSORS], SCALARS)
    got: tuple[Any, ...] = result if len(expected) > 1 else (result,) * len(expected)
    for mine, wanted in zip(got, expected, strict=True):
        assert mine.dtype == wanted.dtype, text
        assert mine.shape == wanted.shape, text
        assert mine.tolist() == wanted.tolist(), text
    for name in ours:
        assert ours[name].tolist() == theirs[name].tolist(), text
