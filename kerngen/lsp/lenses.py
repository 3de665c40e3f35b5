"""Code lenses above kernels and structs, and their commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from lsprotocol import types

from kerngen.compiler import Compiler
from kerngen.gradient import kernel_text
from kerngen.lsp.checked import Checked
from kerngen.report.kernel import as_text, kernel_data
from kerngen.report.layout_data import hints, subjects
from kerngen.report.layout_text import as_text as layout_text
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.library import Library


def lenses(checked: Checked) -> list[types.CodeLens]:
    """Return the code lenses of a file; none if it has errors."""
    return [*_lenses(checked)] if checked.is_right else []


def _lenses(checked: Checked) -> Iterator[types.CodeLens]:
    for item in checked.program.items:
        match item:
            case ast.KernelItem():
                commands = ["kerngen.wgsl", "kerngen.layout"]
                commands += ["kerngen.gradient"] * bool(item.outputs)
            case ast.GradientItem():
                commands = ["kerngen.wgsl", "kerngen.layout", "kerngen.equations"]
            case ast.StructItem():
                commands = ["kerngen.layout"]
            case _:
                continue
        place = checked.range(item.name.span)
        for name in commands:
            arguments = [checked.uri_of(checked.source), item.name.name]
            command = types.Command(TITLES[name], name, arguments=arguments)
            yield types.CodeLens(place, command)


TITLES: Final[Mapping[str, str]] = {
    "kerngen.wgsl": "show WGSL",
    "kerngen.layout": "layout",
    "kerngen.gradient": "gradient",
    "kerngen.equations": "equations",
}
"""The title of the lens of each command."""


def wgsl(checked: Checked, name: str) -> str:
    """Return the text that the lens "show WGSL" opens: the kernel's shaders."""
    module = checked.project.files[0].module
    data = kernel_data(checked.sources.compiler, checked.name, name, module)
    return _text(text for text, _ in as_text(data, wgsl=True))


def layout(checked: Checked, name: str) -> str:
    """Return the text that the lens "layout" opens: of a struct, or of parameters."""
    module = checked.sources.compiler.module(checked.name)
    chosen = [each for each in subjects(module) if name in each.names]
    if not chosen:
        return f"'{name}' has no parameters but tensors: nothing is laid out.\n"
    lines = layout_text(chosen, hints(module))
    return _text("".join(text for text, _ in line) for line in lines)


def equations(checked: Checked, name: str) -> str:
    """Return the text that the lens "equations" opens: those of a derived kernel."""
    return _equations(checked.sources.compiler, checked.name, name)


def gradient(checked: Checked, name: str) -> str:
    """Return the text that the lens "gradient" opens: equations of a kernel's gradient."""
    module = checked.sources.compiler.module(checked.name)
    kernel = next(each for each in module.kernels if each.name == name)
    by = list(kernel.order)
    while by:
        try:
            return _gradient(checked, name, by)
        except CompileError as error:
            # Parameters without a gradient are left out: integers, and those that no
            # output depends on. The error names them.
            refused = {fault.span.text for fault in error.diagnostics}
            left = [each for each in by if each not in refused]
            if left == by:
                raise
            by = left
    return f"'{name}' has no parameter that it could be derived by.\n"


def _gradient(checked: Checked, name: str, by: Sequence[str]) -> str:
    """Return the equations of a gradient, as if the file had an item for it."""
    made = f"{name}_gradient_by_all"
    own = checked.source
    item = f"kernel {made} = gradient of {name} by {', '.join(by)};"

    def read(file: str) -> Source:
        if file == checked.name:
            return Source(own.path, f"{own.text}\n{item}\n", own.name)
        return checked.sources.library.source(file)

    project = checked.project
    compiler = Compiler(Library(read, project.build, project.root))
    text = _equations(compiler, checked.name, made)
    return text.replace(made, f"{name}_gradient")


def _equations(compiler: Compiler, file: str, name: str) -> str:
    kernels = compiler.module(file).kernels
    return kernel_text(next(each for each in kernels if each.name == name))


def _text(lines: Iterator[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


COMMANDS: Final[Mapping[str, Callable[[Checked, str], str]]] = {
    "kerngen.wgsl": wgsl,
    "kerngen.layout": layout,
    "kerngen.gradient": gradient,
    "kerngen.equations": equations,
}
"""The function of each command, from a file and an item's name to a text."""


def run(command: str, checked: Checked, name: str) -> str:
    """Return the text that a lens's command opens; it may be the reason why it can't."""
    if not (checked.items.get("kernel", name) or checked.items.get("struct", name)):
        return f"There is no '{name}' in this file.\n"
    try:
        return COMMANDS[command](checked, name)
    except CompileError as error:
        return str(error)
