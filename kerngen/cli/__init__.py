"""The command line: a module for each command, and this one for all together.

Exit status: 0 done, 1 the user's input or a check failed, 2 wrong usage.  Commands import
the compiler only once they need it, so that a build with nothing to do is quick.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Any, final

import click

from kerngen import __version__
from kerngen.cli.bench import bench
from kerngen.cli.build import build
from kerngen.cli.check import check
from kerngen.cli.console import reporting_system
from kerngen.cli.doctor import doctor
from kerngen.cli.explain import explain
from kerngen.cli.fmt import fmt
from kerngen.cli.layout import layout
from kerngen.cli.new import new
from kerngen.cli.show import show
from kerngen.cli.tune import tune
from kerngen.cli.verify import verify
from kerngen.cli.watch import watch


@final
class Commands(click.Group):
    """All commands; what the system refuses, wherever they meet it, is a message."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments name."""
        with reporting_system():
            return super().invoke(ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kerngen")
def main() -> None:
    """Compile index equations to WGSL, typed Python bindings and a NumPy reference.

    Defaults come from [tool.kerngen] in the nearest pyproject.toml: 'source' is the folder
    of .kern files, 'out' the folder of generated files.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


for _command in (
    new,
    build,
    watch,
    check,
    fmt,
    show,
    layout,
    explain,
    bench,
    tune,
    verify,
    doctor,
):
    main.add_command(_command)
