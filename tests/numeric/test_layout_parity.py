"""What the GPU reads from the uniform struct is what Python packed, bit by bit.

Random parameter lists go through the whole compiler; judged are the struct in the
generated WGSL and the dataclass in the generated Python.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.plan.tree import dispatches_in
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.struct import Field
from tests.budget import examples
from tests.compile import built

from .probe import Device, read_back, shader

wgpu: Any = import_module("wgpu")  # it has no type information

TYPES = tuple(
    type_
    for scalar in ("f32", "i32", "u32")
    for type_ in (scalar, *(f"vec{width}{scalar[0]}" for width in (2, 3, 4)))
)
PARAMETERS = st.lists(st.sampled_from(TYPES), min_size=1, max_size=12)
# Every pattern of bits is drawn; these are the ones that a careless copy changes.
NEGATIVE_ZERO, PAYLOAD_NAN, SIGNALLING_NAN = 0x80000000, 0xFFC12345, 0x7F812345
INFINITY, SUBNORMAL = 0x7F800000, 1
PATTERNS = st.integers(0, 2**32 - 1) | st.sampled_from(
    (NEGATIVE_ZERO, PAYLOAD_NAN, SIGNALLING_NAN, INFINITY, SUBNORMAL)
)


@pytest.fixture(scope="module")
def device() -> Device:
    """A device of the adapter that tests run on."""
    adapters = wgpu.gpu.enumerate_adapters_sync()
    assert adapters, "There is no adapter: install mesa-vulkan-drivers."
    return adapters[0].request_device_sync()


def source(types: list[str]) -> str:
    parameters = "".join(f", p{i}: {type_}" for i, type_ in enumerate(types))
    return f"kernel probe(x: f32[n]{parameters}) -> y: f32[n] {{ y[i] = x[i]; }}"


def value_of(field: Field, words: list[int]) -> NDArray[Any]:
    """The value of a field whose components have these bits."""
    number = field.dtype.base
    return np.array(words, np.uint32).view(number).reshape(field.shape)


def struct_text(kernel: Kernel) -> tuple[str, str]:
    """The uniform struct as the generated shader has it, and its name."""
    stem = next(dispatches_in(kernel.body)).wgsl
    code = (kernel.folder / f"{stem}.wgsl").read_text("utf-8")
    found = re.search(r"^struct (\w+) \{.*?^\}", code, re.MULTILINE | re.DOTALL)
    assert found, code
    return found[0], found[1]


@settings(max_examples=examples(25), deadline=None)
@example(types=["f32", "vec3f", "f32", "vec2u", "vec3i", "i32"], seed=0, pattern=0)
@given(types=PARAMETERS, seed=st.integers(0, 2**32 - 1), pattern=PATTERNS)
def test_gpu_reads_what_python_packed(
    device: Device, types: list[str], seed: int, pattern: int
) -> None:
    with built(source(types)) as (kernel,):
        text, name = struct_text(kernel)
    fields = kernel.uniform.FIELDS
    assert [field.name for field in fields] == [
        "n",
        *(f"p{i}" for i in range(len(types))),
    ]
    count = sum(field.count for field in fields)
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, count, dtype=np.uint32)
    words[rng.integers(count)] = pattern
    given_words = iter(words.tolist())
    bits = [[next(given_words) for _ in range(field.count)] for field in fields]
    expected = [word for part in bits for word in part]
    values = [value_of(field, part) for field, part in zip(fields, bits, strict=True)]
    data = kernel.uniform(*values).pack()
    size = kernel.uniform.SIZE
    assert len(data) == size

    code = shader(text, name, fields)
    assert read_back(device, code, data, size, count).tolist() == expected
    with pytest.raises(wgpu.GPUValidationError):
        read_back(device, code, data, size - 4, count)


@settings(max_examples=examples(25), deadline=None)
@given(types=PARAMETERS, seed=st.integers(0, 2**32 - 1))
def test_a_call_packs_as_the_struct_does(types: list[str], seed: int) -> None:
    """`hosts`, by which calls fill the struct, and the dataclass agree."""
    with built(source(types)) as kernels:
        (kernel,) = kernels
    rng = np.random.default_rng(seed)
    fields = kernel.uniform.FIELDS
    values = [
        value_of(field, rng.integers(0, 2**32, field.count, dtype=np.uint32).tolist())
        for field in fields
    ]
    whole = kernel.uniform(*values)
    kept = [getattr(whole, field.name) for field in fields]
    packed = bytearray(kernel.uniform.SIZE)
    kernel.uniform.pack_values_into(packed, 0, kernel.hosts(*kept))
    assert bytes(packed) == whole.pack()
    again = kernel.uniform.unpack(bytes(packed))
    assert again.pack() == bytes(packed)
