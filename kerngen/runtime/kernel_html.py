"""How a notebook shows generated functions and modules: what their kernels are.

All comes from what the module holds: its documentation, its kernels' descriptions, and
the shaders where they lie.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType

from kerngen.runtime.choices import kernel_of
from kerngen.runtime.errors import Error
from kerngen.runtime.html import Html, code, element, folded, table
from kerngen.runtime.kernel import Dispatch, Kernel, Schedule, Stage
from kerngen.runtime.struct import Struct, UniformStruct

_EQUATIONS = "::\n\n"
"""What the equations come after in a generated docstring."""


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
    return element(
        "div",
        element("b", function.__name__),
        f" {kernel.origin}",
        *_about(function),
        *_uniform(kernel.uniform),
        *(_stage(kernel, stage) for stage in kernel.stages if stage.schedules),
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


def _stage(kernel: Kernel, stage: Stage) -> Html:
    schedules = (_schedule(kernel, schedule) for schedule in stage.schedules)
    return folded(f"Stage {stage.name}", *schedules)


def _schedule(kernel: Kernel, schedule: Schedule) -> Html:
    dispatches = [each for v in schedule.variants for each in v.dispatches]
    unique = {dispatch.wgsl: dispatch for dispatch in dispatches}
    shaders = (_shader(kernel, each) for each in unique.values())
    indent = 'style="margin-left: 1em"'
    return element("div", folded(schedule.strategy, *shaders), attributes=indent)


def _shader(kernel: Kernel, dispatch: Dispatch) -> Html:
    try:
        text = kernel.shader(dispatch)
    except Error as error:
        text = str(error)
    indent = 'style="margin-left: 1em"'
    return element("div", folded(dispatch.wgsl, code(text)), attributes=indent)
