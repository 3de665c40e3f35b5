"""One program put to every test: judges of its shaders, and runs held to the interpreter."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import CompiledModule, compile_text
from kerngen.ir.builtins.table import BUILTINS
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.struct import Struct
from kerngen.runtime.values.elements import Element
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax.parser import parse
from tests.compile import imported

from .interpreter import Interpreter
from .memory import DTYPES, Memory, at_path, filled, numbers_in, view
from .numbers import UndecidedError, bounds
from .programs import Program
from .tensors import Array, Given, IllegalCallError

Results: TypeAlias = dict[str, NDArray[Any]]
Judge: TypeAlias = Callable[[str], str]

ACCURACIES = {name: row.accuracy for name, row in BUILTINS.items()}
NO_FIT = frozenset({"KG0751", "KG0753"})
"""What is wrong with a schedule that fits no stage, or whose stage there is not."""

SMALLER = 4
"""What long axes are cut to where the interpreter would take too long."""

_numbers = count()


class FaultFoundError(AssertionError):
    """A program that the compiler gets wrong."""


@dataclass(frozen=True)
class Built:
    """A kernel as compiled, and its shaders."""

    kernel: Kernel
    shaders: tuple[str, ...]
    text: str
    """The one that was compiled of those that were given."""


@dataclass(frozen=True)
class Outcome:
    """What came of a program: why it says nothing, or the text that proved right."""

    discarded: str = ""
    text: str = ""
    noted: frozenset[str] = frozenset()
    """What the interpreter saw of it, where types tell."""


@contextmanager
def built(*texts: str) -> Generator[Built]:
    """Compile and import a program of one kernel: the first whose schedules fit."""
    name = f"random_{next(_numbers)}"
    compiled, text = _compiled(name, texts)
    files = compiled.files
    shaders = {text.decode() for path, text in files.items() if path.endswith(".wgsl")}
    with imported(name, files) as (kernel,):
        yield Built(kernel, tuple(sorted(shaders)), text)


def _compiled(name: str, texts: Sequence[str]) -> tuple[CompiledModule, str]:
    text, *others = texts
    try:
        return compile_text(text, f"{name}.kern", formatted=False), text
    except CompileError as error:
        if not others or {fault.code for fault in error.diagnostics} - NO_FIT:
            raise
        return _compiled(name, others)


@dataclass
class Trial:
    """Tries programs on a device; `judges` say what is wrong with a shader.

    `reference` is a context without a device: there NumPy runs the references.
    """

    ctx: gpu.Context
    reference: gpu.Context
    judges: Mapping[str, Judge]

    def check(self, program: Program) -> Outcome:
        """Put a program to every test.

        Raises FaultFoundError, with the program, if it fails one.
        """
        try:
            return self._check(program)
        except FaultFoundError:
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            raise FaultFoundError(f"{trace}\n{program}") from error

    def _check(self, program: Program) -> Outcome:
        sizes = dict(program.sizes)
        try:
            try:
                expected, noted = self.expect(program, sizes)
            except UndecidedError as discard:
                if "work" not in str(discard):
                    raise
                sizes = {dim: min(size, SMALLER) for dim, size in sizes.items()}
                expected, noted = self.expect(program, sizes)
        except UndecidedError as discard:
            return Outcome(str(discard))
        arrays = program.arrays(sizes)
        generic = f"{program.text}\nschedule {program.kernel} {{ generic }}"
        with built(generic) as slow, built(*program.sources) as chosen:
            self.judge(program, slow, chosen)
            ways: dict[str, Callable[[], Results]] = {
                "reference": lambda: run(self.reference, slow, program, arrays),
                "generic": lambda: run(self.ctx, slow, program, arrays),
                "chosen": lambda: run(self.ctx, chosen, program, arrays),
                "again": lambda: run(self.ctx, chosen, program, arrays),
            }
            if expected is None:
                for name, way in ways.items():
                    _must_refuse(program, name, way)
                return Outcome(text=chosen.text, noted=noted)
            results = {name: way() for name, way in ways.items()}
        for name, result in results.items():
            _compare(program, name, result, expected)
        for tensor, wanted in expected.items():
            once, again = results["chosen"][tensor], results["again"][tensor]
            if _bits(once, wanted) != _bits(again, wanted):
                raise FaultFoundError(
                    f"Other bits in {tensor} when run twice\n{program}"
                )
        return Outcome(text=chosen.text, noted=noted)

    def expect(
        self, program: Program, sizes: Mapping[str, int]
    ) -> tuple[dict[str, Array] | None, frozenset[str]]:
        """What the program means, None if the language refuses it; and what it uses."""
        tree = parse(Source("random.kern", program.text))
        interpreter = Interpreter(tree, ACCURACIES)
        try:
            results = interpreter.run(
                program.kernel, program.arrays(sizes), program.scalars
            )
        except IllegalCallError:
            return None, frozenset(interpreter.noted)
        return results, frozenset(interpreter.noted)

    def judge(self, program: Program, *kernels: Built) -> None:
        """Have every shader judged."""
        for shader in dict.fromkeys(s for kernel in kernels for s in kernel.shaders):
            for name, judge in self.judges.items():
                message = judge(shader)
                if message:
                    raise FaultFoundError(f"{name}: {message}\n{shader}\n{program}")


def run(
    ctx: gpu.Context,
    built: Built,
    program: Program,
    arrays: Mapping[str, Given],
) -> Results:
    """What a context gives: the tensors that change, and the outputs.

    All by their place: what Python reserves has another name there.
    """
    kernel = built.kernel
    tensors = [
        ctx.tensor(filled(spec.element.DTYPE, *fields(given)), spec.element)
        for spec, given in zip(kernel.inputs, arrays.values(), strict=True)
    ]
    scalars = [
        passed(spec.element, value)
        for spec, value in zip(kernel.scalars, program.scalars.values(), strict=True)
    ]
    made = kernel.launch(ctx, tuple(tensors), tuple(scalars), kernel.no_out)
    named = zip(program.inputs, tensors, strict=True)
    results = {t.name: array.numpy() for t, array in named if t.role == "update"}
    outputs = zip(program.outputs, made, strict=True)
    return results | {name: array.numpy() for name, array in outputs}


def fields(given: Given) -> tuple[tuple[int, ...], Memory, list[Any]]:
    """Return what an array is made from."""
    return given.shape, given.memory, given.cells


def passed(element: type[Element], value: Any, depth: int = 0) -> Any:
    """Return a struct made of nested tuples, `depth` arrays of them, or else a value."""
    if not issubclass(element, Struct):
        return value
    if depth:
        return tuple(passed(element, each, depth - 1) for each in value)
    pairs = zip(element.FIELDS, value, strict=True)
    return element(*(passed(f.type, part, len(f.lengths)) for f, part in pairs))


def _must_refuse(program: Program, name: str, way: Callable[[], Results]) -> None:
    try:
        way()
    except gpu.ShapeError:
        return
    raise FaultFoundError(f"{name}: the call should be a ShapeError\n{program}")


def _compare(
    program: Program, name: str, results: Results, expected: Mapping[str, Array]
) -> None:
    """Hold the results of one way to what they should be."""
    for tensor, wanted in expected.items():
        got = results[tensor]
        where = f"{name}: {tensor}"
        for path, kept in numbers_in(wanted.memory):
            column = view(got, len(wanted.shape), wanted.memory, path)
            cells = [at_path(cell, path) for cell in wanted.cells]
            fault = _difference(column, kept, wanted.shape, cells)
            if fault:
                raise FaultFoundError(f"{where}{list(path)}: {fault}\n{program}")


def _bits(array: NDArray[Any], like: Array) -> list[bytes]:
    """Return the bits of every number, without what lies between them."""
    rank, memory = len(like.shape), like.memory
    numbers = numbers_in(memory)
    return [view(array, rank, memory, path).tobytes() for path, _ in numbers]


def _difference(
    got: NDArray[Any], kept: str, shape: tuple[int, ...], cells: Sequence[Any]
) -> str:
    """Return what is wrong with one number of each element, if anything is."""
    if got.dtype != DTYPES[kept]:
        return f"holds {got.dtype}, not {kept}"
    if got.shape != shape:
        return f"is {got.shape}, not {shape}"
    for number, (mine, cell) in enumerate(
        zip(got.reshape(-1).tolist(), cells, strict=True)
    ):
        value, error = bounds(cell)
        if not abs(mine - value) <= error:
            return f"cell {number} is {mine}, not {value} within {error}"
    return ""
