"""Size arguments of the command line: `m=4096,k=4096`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, final

import click

Sizes: TypeAlias = Mapping[str, int]


@final
class SizesType(click.ParamType[Sizes]):
    """The type of a size argument: lengths by name."""

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
