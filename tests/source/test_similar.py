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


def test_a_longer_name_is_not_meant_by_one_letter() -> None:
    assert closest("j", ["j1", "ij", "J"]) == "J"
    assert closest("j", ["j1", "ij"]) == ""


def test_where_nothing_is_alike_all_names_follow() -> None:
    assert suggesting("No 'y'.", "y", []) == "No 'y'."
    assert suggesting("No 'y'.", "y", ["alpha"]) == "No 'y'. There is 'alpha'."
    both = ["alpha", "beta", "alpha"]
    assert suggesting("No 'y'.", "y", both) == "No 'y'. There are 'alpha' and 'beta'."
    many = suggesting("No 'y'.", "y", [f"name{n}" for n in range(40)])
    assert many.endswith("'name11' and 28 more.")
    said = "No 'y'; it has 'alpha'."
    assert suggesting(said, "y", ["alpha"]) == said
    assert suggesting("No 'alhpa'.", "alhpa", ["alpha"]).endswith(" mean 'alpha'?")
