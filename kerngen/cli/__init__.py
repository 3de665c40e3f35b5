"""The command line: a module for each command, and this one for all together.

Exit status: 0 done, 1 the user's input or a check failed, 2 wrong usage, 130 Ctrl-C.
Commands import the compiler only once they need it, so that a build with nothing to do
is quick.
"""

from __future__ import annotations

import gc
import sys
from io import TextIOWrapper
from typing import Any, final

from kerngen.parts import COMPILER, MissingPartError, missing_part, needing

with needing("The command line", COMPILER):
    import click

    from kerngen import __version__
    from kerngen.cli.bench import bench
    from kerngen.cli.bind import bind
    from kerngen.cli.build import build
    from kerngen.cli.check import check
    from kerngen.cli.console import reporting_system
    from kerngen.cli.doctor import doctor
    from kerngen.cli.explain import explain
    from kerngen.cli.fmt import fmt
    from kerngen.cli.layout import layout
    from kerngen.cli.lsp import lsp
    from kerngen.cli.new import new
    from kerngen.cli.show import show
    from kerngen.cli.tune import tune
    from kerngen.cli.verify import verify
    from kerngen.cli.watch import watch


@final
class CommandGroup(click.Group):
    """All commands; an OSError, a missing package and Ctrl-C become short messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of their use."""
        del ctx
        return [*self.commands]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments name."""
        try:
            with reporting_system():
                return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = missing_part(f"'kerngen {ctx.invoked_subcommand}'", error)
            if not isinstance(missing, MissingPartError):
                raise
            raise click.ClickException(str(missing)) from None
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            raise click.exceptions.Exit(130) from None


def _print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if not value:
        return
    from importlib.metadata import version
    from platform import python_version

    click.echo(
        f"kerngen {__version__} (Python {python_version()}, wgpu {version('wgpu')})"
    )
    ctx.exit()


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, Python's and wgpu's, and exit.",
)
def main() -> None:
    """Compile index equations to WGSL, typed Python bindings and a NumPy reference.

    Defaults come from [tool.kerngen] in the nearest pyproject.toml that has it: 'source'
    is the folder of .kern files, 'out' the folder of generated files.
    """
    # Most objects that the compiler makes live to its end. To look for garbage often would
    # cost a third of its time.
    gc.set_threshold(100_000, 50, 50)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


for _command in (
    new,
    build,
    watch,
    bind,
    check,
    fmt,
    show,
    layout,
    explain,
    bench,
    tune,
    verify,
    doctor,
    lsp,
):
    main.add_command(_command)
