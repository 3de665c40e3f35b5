"""How long a command may take."""

from __future__ import annotations

import math

import click


def number_of_seconds(
    ctx: click.Context, param: click.Parameter, value: float | None
) -> float | None:
    """Return an option's value, if there is one; NaN, which no bound refuses, is none."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("'nan' is no number of seconds.", ctx, param)
    return value
