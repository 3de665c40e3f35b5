"""How a notebook shows generated functions and modules: what their kernels are.

All comes from what the module holds: its documentation, its kernels' descriptions, and
the shaders where they lie.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import final

from kerngen.runtime.choices import kernel_of
from kerngen.runtime.errors import Error
from kerngen.runtime.html import Html, code, element, folded, table
from kerngen.runtime.kernel import Dispatch, Kernel, Schedule, Stage
from kerngen.runtime.struct import Struct, UniformStruct

_EQUATIONS = "::\n\n"
"""What the equations come after in a generated docstring."""

_DIM = re.compile(r"""\bd\[['"](\w+)['"]\]""")
_DIM_NAME = r"\1"
"""How conditions read a dim, and how it is shown."""


def is_kernel_function(value: object) -> bool:
    """Whether a value is a generated function that launches a kernel."""
    if not isinstance(value, FunctionType) or "launch" not in value.__code__.co_names:
        return False
    known = value.__globals__
    return any(isinstance(known.get(n), Kernel) for n in value.__code__.co_names)


def is_kernel_module(module: ModuleType) -> bool:
    """Whether a module is a generated one."""
    return {"_WGSL", "check_abi"} <= vars(module).keys()


def kernel_html(function: FunctionType) -> str:
    """Return the markup of a function: equations, signature, layout and shaders."""
    kernel = kernel_of(function)
    shaders = _Shaders(kernel, _conditions(function.__module__))
    return element(
        "div",
        element("b", function.__name__),
        f" {kernel.origin}",
        *_about(function),
        *_uniform(kernel.uniform),
        *(shaders.stage(stage) for stage in kernel.stages if stage.schedules),
    ).text


def module_html(module: ModuleType) -> str:
    """Return the markup of a module: its kernels and structs, folded."""
    values = [getattr(module, name) for name in module.__all__]
    functions = sorted(filter(is_kernel_function, values), key=_line)
    structs = (v for v in values if isinstance(v, type) and issubclass(v, Struct))
    return element(
        "div",
        element("b", module.__name__.rpartition(".")[2]),
        code(inspect.getdoc(module) or ""),
        *(folded(_title(each), *_about(each)) for each in functions),
        *(folded(struct.__name__, *_layout(struct)) for struct in structs),
    ).text


def _line(function: FunctionType) -> int:
    return function.__code__.co_firstlineno


def _title(function: FunctionType) -> Html:
    first, *_ = (inspect.getdoc(function) or "").split("\n")
    return element("span", element("b", function.__name__), f" {first}")


def _about(function: FunctionType) -> Iterator[Html]:
    """Yield what its docstring says, and how it is called."""
    doc = inspect.getdoc(function) or ""
    yield element("div", doc.partition("\n\nArgs:")[0])
    yield code(inspect.cleandoc(doc.rpartition(_EQUATIONS)[2]))
    # Annotations are strings, which Python shows in quotes.
    signature = str(inspect.signature(function)).replace("'", "")
    yield code(f"{function.__name__}{signature}")


def _uniform(uniform: type[UniformStruct]) -> Iterator[Html]:
    if uniform.FIELDS:
        yield folded(f"Uniform struct, {uniform.SIZE} bytes", *_layout(uniform))


def _layout(struct: type[Struct | UniformStruct]) -> Iterator[Html]:
    yield table(
        ("offset", "bytes", "field"),
        (
            (str(field.offset), str(field.size), f"{field.name}: {field.spelling}")
            for field in struct.FIELDS
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class _Shaders:
    """The stages of a kernel; `conditions` are its module's lambdas by their lines."""

    kernel: Kernel
    conditions: Mapping[int, str]

    def stage(self, stage: Stage) -> Html:
        return folded(f"Stage {stage.name}", *map(self._schedule, stage.schedules))

    def _schedule(self, schedule: Schedule) -> Html:
        shaders = [
            self._shader(dispatch, self._when(variant.when))
            for variant in schedule.variants
            for dispatch in variant.dispatches
        ]
        title = f"{schedule.strategy}{self._when(schedule.when)}"
        return _indented(folded(title, *shaders))

    def _shader(self, dispatch: Dispatch, condition: str) -> Html:
        try:
            text = self.kernel.shader(dispatch)
        except Error as error:
            text = str(error)
        return _indented(folded(f"{dispatch.wgsl}{condition}", code(text)))

    def _when(self, condition: Callable[..., bool] | None) -> str:
        line = condition.__code__.co_firstlineno if condition else 0
        text = self.conditions.get(line, "")
        return f" when {_DIM.sub(_DIM_NAME, text)}" if text else ""


def _indented(child: Html) -> Html:
    return element("div", child, attributes='style="margin-left: 1em"')


def _conditions(module: str) -> Mapping[int, str]:
    """Return the bodies of a module's lambdas by their lines; nothing without its text."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Lambda))
    return {node.lineno: ast.unparse(node.body) for node in nodes}
