"""`kerngen show`: print the stages, the plan and the shaders of one kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.kernels import NamedKernel, find_kernel, split_kernel
from kerngen.cli.console import console_for, reporting
from kerngen.cli.project import Selection, select_or_read

if TYPE_CHECKING:
    from kerngen.report.kernel import KernelData


@click.command(
    epilog=options.examples(
        "kerngen show dense", "kerngen show kernels/layers.kern:dense --json"
    )
)
@click.argument("kernel")
@options.src
@click.option("--no-wgsl", is_flag=True, help="Leave the text of the shaders out.")
@options.as_json("a JSON object")
def show(kernel: str, src: Path | None, no_wgsl: bool, as_json: bool) -> None:
    """Show what KERNEL becomes: equation, parameters, stages, WGSL.

    KERNEL is a kernel's name, file.kernel where two files have one of that name, or
    FILE.kern:kernel.  SRC is a .kern file or a folder of them; '-' is stdin.
    """
    file, wanted = split_kernel(kernel)
    if file and src:
        raise click.UsageError(f"KERNEL names the file '{file}': leave '{src}' out.")
    if as_json and no_wgsl:
        raise click.UsageError("--json always has the shaders: leave --no-wgsl out.")
    selection = select_or_read(file or src)
    with reporting(sys.stderr):
        data = _data(find_kernel(selection, wanted), selection)
    if as_json:
        click.echo(json.dumps(data, indent=2))
        return
    from kerngen.report.kernel import as_text

    console = console_for(sys.stdout)
    for line, style in as_text(data, wgsl=not no_wgsl):
        console.print(line, style=style)


def _data(kernel: NamedKernel, selection: Selection) -> KernelData:
    from kerngen.compiler import Compiler
    from kerngen.report.kernel import kernel_data

    compiler = Compiler(selection.library())
    return kernel_data(compiler, kernel.file.name, kernel.name, kernel.file.module)
