"""The C types of wgpu that are parsed together are those that it would parse itself."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from kerngen.runtime import Context
from kerngen.runtime.device.c_types import ARRAYS, FUNCTIONS, POINTERS, parse_together

USE = """
import numpy, wgpu.backends.auto
from wgpu.backends.wgpu_native import ffi
import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise, softmax

texts, parse = [], ffi._parser._parse
ffi._parser._parse = lambda text: (texts.append(text), parse(text))[1]
with gpu.open(adapter="software", unchecked=True) as ctx:
    x = ctx.vector(numpy.ones(5), f32)
    y = ctx.zeros(5, f32)
    with ctx.timed() as span:
        elementwise.add(x, x, out=y)
    softmax.softmax(x.reshape(1, 5)), softmax.softmax(ctx.zeros((1, 64), f32))
    print(y.numpy().sum(), span.seconds > 0, len(texts))
"""


@pytest.fixture
def ffi(ctx: Context) -> Any:
    """What wgpu declares its types with."""
    assert ctx.kind == "software"
    return import_module("wgpu.backends.wgpu_native").ffi


@pytest.mark.parametrize("name", [*POINTERS, *ARRAYS, *FUNCTIONS])
def test_a_type_is_what_cffi_makes_of_its_name(ffi: Any, name: str) -> None:
    known = ffi._parsed_types
    together = known.pop(name)
    ffi._typeof(name, consider_function_as_funcptr=True)
    assert known[name] == together


def test_a_cache_of_another_form_is_left_alone(ffi: Any) -> None:
    known: dict[str, object] = {}

    def typeof(name: str) -> object:
        known[name] = "something else"
        return ffi.typeof(name)

    parse_together(SimpleNamespace(_parsed_types=known, typeof=typeof))
    assert not known


def test_a_first_call_parses_once() -> None:
    command = [sys.executable, "-c", USE]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.split() == ["10.0", "True", "1"]
