"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

import click

from kerngen.cli.arguments.paths import PATH
from kerngen.cli.arguments.targets import TARGETS
from kerngen.cli.console import be_quiet

Decorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]
Sizes: TypeAlias = Mapping[str, int]


@final
class SizesType(click.ParamType[Sizes]):
    """The type of a size argument: lengths by name, as in `m=4096,k=4096`."""

    name = "DIM=LENGTH,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sizes:
        """Return the lengths; fail with the expected form."""
        sizes: dict[str, int] = {}
        for part in str(value).split(","):
            name, equals, length = (piece.strip() for piece in part.partition("="))
            if not (name.isidentifier() and equals and length.isdecimal()):
                self.fail(f"'{part}' is not of the form m=4096.", param, ctx)
            if name in sizes:
                self.fail(f"'{name}' is given twice.", param, ctx)
            sizes[name] = int(length)
        return sizes


SIZES: Final = SizesType()


def _be_quiet(_ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        be_quiet()


src: Final = click.argument("src", required=False, type=PATH)

out_folder: Final = click.option(
    "--out",
    metavar="DIR",
    type=PATH,
    help="The folder to write to; it becomes a Python package.",
)

jobs: Final = click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Compile in at most N processes; by default, one for each core.",
)

target: Final = click.option(
    "--target",
    "targets",
    metavar="LANGUAGES",
    type=TARGETS,
    help="python, typescript, or both as python,typescript; python by default.",
)

sizes: Final = click.option(
    "--sizes",
    type=SIZES,
    multiple=True,
    help="Lengths by dim, as m=4096,k=4096,n=4096; repeat it for several.",
)

quiet: Final = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=_be_quiet,
    help="Print errors and changes only.",
)

stdin_filename: Final = click.option(
    "--stdin-filename",
    metavar="NAME",
    help="The file name in messages about the text that '-' reads.",
)


def examples(*lines: str) -> str:
    """Return the epilog of a command's help: its examples."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def as_json(what: str) -> Decorator:
    """Return the option `--json`."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what}.")


def budget(default: float | None, what: str) -> Decorator:
    """Return the option `--budget`: how long a command may take."""
    shown: dict[str, Any] = {} if default is None else {"show_default": True}
    return click.option(
        "--budget",
        type=click.FloatRange(min=1),
        callback=_number_of_seconds,
        default=default,
        metavar="SECONDS",
        help=what,
        **shown,
    )


def _number_of_seconds(
    ctx: click.Context, param: click.Parameter, value: float | None
) -> float | None:
    """Return an option's value; refuse NaN, which passes click's check of the minimum."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("'nan' is not a number of seconds.", ctx, param)
    return value
