"""How much work a program takes grows as its length does, whatever it is long of."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable

import pytest

from kerngen.compiler import compile_text

SHORT, TIMES = 8, 4
MORE_THAN_LINEAR = 2
"""Short lists are walked within loops over others: how much that may add."""


def reductions(count: int) -> str:
    lets = (f"let r{n}[i] = sum[j] x[i, j] * {n}.5;" for n in range(count))
    total = " + ".join(f"r{n}[i]" for n in range(count))
    head = "kernel k(x: f32[m, n]) -> y: f32[m]"
    return f"{head} {{ {' '.join(lets)} y[i] = {total}; }}"


def reductions_at_once(count: int) -> str:
    total = " + ".join(f"sum[j] x[i, j] * {n}.5" for n in range(count))
    return f"kernel k(x: f32[m, n]) -> y: f32[m] {{ y[i] = {total}; }}"


def lets(count: int) -> str:
    chain = (f"let v{n}[i] = v{n - 1}[i] * {n}.5;" for n in range(1, count))
    head = "kernel k(x: f32[n]) -> y: f32[n]"
    return f"{head} {{ let v0[i] = x[i]; {' '.join(chain)} y[i] = v{count - 1}[i]; }}"


def statements(count: int) -> str:
    body = (f"y[i] = y[i] * {n}.5 + x[i];" for n in range(count))
    return f"kernel k(x: f32[n], mut y: f32[n]) {{ {' '.join(body)} }}"


def kernels(count: int) -> str:
    one = "kernel k{}(x: f32[n]) -> y: f32[n] {{ y[i] = x[i]; }}\n"
    return "".join(one.format(number) for number in range(count))


def hosts(count: int) -> str:
    chain = (f"host h{n} = h{n - 1} * 2.0;" for n in range(1, count))
    head = "kernel k(x: f32[n], s: f32) -> y: f32[n]"
    return f"{head} {{ host h0 = s; {' '.join(chain)} y[i] = x[i] * h{count - 1}; }}"


def functions(count: int) -> str:
    chain = (f"fn g{n}(x: f32) -> f32 {{ g{n - 1}(x) + x }}\n" for n in range(1, count))
    first = "fn g0(x: f32) -> f32 { x * x }\n"
    last = f"kernel k(x: f32[n]) -> y: f32[n] {{ y[i] = g{count - 1}(x[i]); }}"
    return f"{first}{''.join(chain)}{last}"


def calls(text: str) -> int:
    """How often compiling a text calls a function: the same every time."""
    profile = cProfile.Profile()
    profile.runcall(compile_text, text, "k.kern", formatted=False)
    found: int = vars(pstats.Stats(profile))["total_calls"]
    return found


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(reductions, marks=pytest.mark.nightly),
        pytest.param(reductions_at_once, marks=pytest.mark.nightly),
        lets,
        statements,
        kernels,
        hosts,
        functions,
    ],
)
def test_work_grows_with_length(program: Callable[[int], str]) -> None:
    calls(program(1 + SHORT))  # what is done once: the parser's tables, the imports
    assert calls(program(SHORT * TIMES)) < (
        calls(program(SHORT)) * TIMES * MORE_THAN_LINEAR
    )
