"""What messages call a value that is wrong."""

from __future__ import annotations

from fractions import Fraction
from uuid import UUID

import numpy as np
import pytest

from kerngen.runtime.values.kinds import kind_of, with_article


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "an int"),
        ("", "a str"),
        (None, "None"),
        (object(), "an object"),
        (np.zeros(1), "a numpy.ndarray"),
        (Fraction(1), "a fractions.Fraction"),
        (UUID(int=0), "a uuid.UUID"),
    ],
)
def test_a_value_is_called_by_its_type(value: object, name: str) -> None:
    assert kind_of(value) == name


def test_the_article_is_as_it_is_spoken() -> None:
    names = ("Arm", "Light", "UniformStruct", "Update", "u32")
    articles = [with_article(name).split()[0] for name in names]
    assert articles == ["an", "a", "a", "an", "a"]
