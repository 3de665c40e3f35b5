"""What is too deep is a diagnostic, and what is not compiles."""

from __future__ import annotations

import pytest

from kerngen.check.items.functions import MOST_NESTED
from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError
from kerngen.syntax.depth import LIMIT


def chain(length: int) -> str:
    """`length` functions, each of which calls the next one."""
    steps = (f"fn g{n}(x: f32) -> f32 {{ g{n + 1}(x) }}\n" for n in range(length - 1))
    last = f"fn g{length - 1}(x: f32) -> f32 {{ exp(x) }}\n"
    return "".join(steps) + last


def kernel(value: str) -> str:
    return f"kernel k(x: f32[n]) -> y: f32[n] {{ y[i] = {value}; }}\n"


def codes_of(text: str) -> list[str]:
    try:
        compile_text(text, "limits.kern", formatted=False)
    except CompileError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]
    return []


def test_functions_of_the_limit_compile_in_an_expression_of_the_limit() -> None:
    deep = "-" * (LIMIT - 3) + "g0(x[i])"
    assert codes_of(chain(MOST_NESTED - 1) + kernel(deep)) == []


def test_a_long_chain_is_not_deep() -> None:
    function = f"fn f(x: f32) -> f32 {{ {' * '.join('x' * 150)} }}\n"
    value = " + ".join(["x[i]"] * 150)
    reduced = value.replace("i", "j")
    assert codes_of(function + kernel(f"f({value}) + sum[j] ({reduced})")) == []


@pytest.mark.parametrize(
    ("nested", "factors", "matrix"),
    [
        (0, 179, "mat4x4f"),
        (120, 59, "mat2x2h"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                (0, 179, "mat2x2h"),
                (60, 119, "mat4x4f"),
                (60, 119, "mat2x2h"),
                (120, 59, "mat4x4f"),
            )
        ),
    ],
)
def test_matrices_are_multiplied_as_deep_as_python_reads_calls(
    nested: int, factors: int, matrix: str
) -> None:
    head = f"kernel k(x: {matrix}[n]) -> y: {matrix}[n]"

    def product(length: int) -> str:
        chain = " * ".join(["x[i]"] * length)
        return f"{head} {{ y[i] = {'transpose(' * nested}{chain}{')' * nested}; }}\n"

    assert codes_of(product(factors)) == []
    assert codes_of(product(factors + 10)) == ["KG0134"]


def test_functions_beyond_the_limit_are_one_fault() -> None:
    assert codes_of(chain(MOST_NESTED) + kernel("g0(x[i])")) == ["KG0216"]


def test_a_long_chain_of_calls_is_told_about_every_so_often() -> None:
    codes = codes_of(chain(3000) + kernel("g0(x[i])"))
    assert codes == ["KG0216"] * (3000 // MOST_NESTED)


def test_a_long_cycle_of_calls_is_one_fault() -> None:
    cycle = chain(2000).replace("exp(x)", "g0(x)")
    with pytest.raises(CompileError) as caught:
        compile_text(cycle + kernel("g0(x[i])"), "cycle.kern", formatted=False)
    (fault,) = (f for f in caught.value.diagnostics if f.code == "KG0207")
    assert fault.message == (
        "The function 'g0' calls itself: 'g0' calls 'g1' calls 'g2' calls 'g3' calls "
        "... calls 'g0'."
    )


def test_functions_that_call_another_twice_are_walked_once() -> None:
    calls = "".join(
        f"fn g{n}(x: f32) -> f32 {{ g{n - 1}(x) + g{n - 1}(2.0 * x) }}\n"
        for n in range(1, 30)
    )
    kernel = "kernel f(x: f32[n]) -> y: f32[n] { y[i] = g29(x[i]); }"
    # Walked call by call, that would be 2^29 functions.
    compiled = compile_text(f"fn g0(x: f32) -> f32 {{ x }}\n{calls}{kernel}", "f.kern")
    assert [kernel.name for kernel in compiled.module.kernels] == ["f"]
