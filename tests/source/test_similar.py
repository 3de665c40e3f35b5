"""Which name is meant by one that is not known."""

from __future__ import annotations

from kerngen.source.similar import MOST, closest, suggesting


def test_what_is_written_alike_is_meant() -> None:
    assert closest("temprature", ["time", "temperature"]) == "temperature"
    assert closest("Scale", ["scales", "scale"]) == "scale"
    assert closest("x", ["alpha", "beta"]) == ""
    assert closest("q" * 1000, ["q" * 999]) == ""


def test_one_name_of_very_many_is_still_found() -> None:
    names = [f"other{number}" for number in range(10 * MOST)]
    assert closest("sacle", [*names, "scale"]) == "scale"


def test_a_sentence_ends_where_nothing_is_alike() -> None:
    assert suggesting("No 'y'.", "y", ["alpha"]) == "No 'y'."
    assert suggesting("No 'alhpa'.", "alhpa", ["alpha"]).endswith(" mean 'alpha'?")
