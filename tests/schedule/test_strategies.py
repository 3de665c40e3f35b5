"""The table of strategies: what schedules with other options share."""

from __future__ import annotations

import pytest

from kerngen.ir.strategies import OPTIONS, OptionRule
from kerngen.schedule.strategies import STRATEGIES

EVERY_OPTION = [
    (strategy, option)
    for strategy, rules in OPTIONS.items()
    for option in rules
    if strategy in STRATEGIES
]


def values(rule: OptionRule) -> list[tuple[int, ...] | None]:
    """Return values of an option that mean something else each, None if it is left out."""
    tried = [*dict.fromkeys(rule.tried)]
    return [*tried[:3]] if len(tried) > 1 else [*tried, None]


@pytest.mark.parametrize(("strategy", "option"), EVERY_OPTION)
def test_other_options_are_other_shaders(strategy: str, option: str) -> None:
    key = STRATEGIES[strategy].shader_key
    given = values(OPTIONS[strategy][option])
    keys = [key({} if value is None else {option: value}) for value in given]
    assert len(set(keys)) == len(keys) > 1
