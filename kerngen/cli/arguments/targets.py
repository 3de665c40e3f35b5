"""The option for output languages: `python,typescript`."""

from __future__ import annotations

from typing import Final, TypeAlias, final

import click

from kerngen.emit.targets import Target
from kerngen.source.similar import suggesting

Targets: TypeAlias = frozenset[Target]

DEFAULT: Final[Targets] = frozenset((Target.PYTHON,))
_NAMES: Final = tuple(target.value for target in Target)


def read_targets(text: str) -> Targets:
    """Return the languages in a comma-separated text.

    Raises:
        ValueError: If one is unknown.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in _NAMES:
            sentence = f"'{name}' is no target."
            raise ValueError(suggesting(sentence, name, _NAMES))
    return frozenset(map(Target, names))


@final
class TargetsType(click.ParamType[Targets]):
    """The type of the option: languages separated by commas."""

    name = "languages"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Targets:
        """Return the languages."""
        try:
            return read_targets(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


TARGETS: Final = TargetsType()
