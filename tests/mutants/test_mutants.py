"""The changes that are made to a module, and what becomes of one whose tests are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import trial
from tests.mutants.belonging import own_tests, wider_tests
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.sample import every_folder, sample
from tests.mutants.trial import BaselineError, Bench, Outcome
from tests.project.tree import ROOT

MODULE = b'''
"""A docstring: 1 + 1."""
__all__ = ["f" + "g"]


@decorated(True)
def f(x: Literal[1], y: int = 2) -> "A | B":
    assert x > 0
    if TYPE_CHECKING:
        z = 3
    if x is not y and g(x, y) <= 1:
        raise ValueError(f"{x + 1}" + str(4))
    for \xc3\xa9 in a: b(\xc3\xa9)
    return min(1.5, 2.5) + max(*a) * h(not x, -y) if x else "1"
'''

CHANGES = {
    ("2", "3"),
    ("2", "1"),
    ("is not", "is"),
    ("and", "or"),
    ("<=", "<"),
    ("1", "2"),
    ("1", "0"),
    ("x, y", "y, x"),
    ('raise ValueError(f"{x + 1}" + str(4))', "pass"),
    ("b(é)", "pass"),
    ('min(1.5, 2.5) + max(*a) * h(not x, -y) if x else "1"', "None"),
    ("min", "max"),
    ("1.5", "2.5"),
    ("1.5", "0.5"),
    ("2.5", "3.5"),
    ("2.5", "1.5"),
    ("+", "-"),
    ("max", "min"),
    ("*", "+"),
    ("not x, -y", "-y, not x"),
    ("not x", "x"),
    ("-y", "y"),
    ("x", "(not (x))"),
}
"""What is changed there, and to what."""


def change(mutant: Mutant) -> tuple[str, str]:
    replaced = mutant.source[mutant.start : mutant.end]
    return replaced.decode(), mutant.replacement.decode()


def test_a_module_is_changed_where_it_matters() -> None:
    mutants = mutants_of("kerngen/a/b.py", MODULE)
    assert {change(mutant) for mutant in mutants} == CHANGES
    assert len(mutants) == len(CHANGES)
    assert all(mutant.is_program for mutant in mutants)
    (swapped,) = (each for each in mutants if each.replacement == b"y, x")
    assert swapped.place == "kerngen/a/b.py:11"
    assert swapped.diff.splitlines() == [
        "+++ kerngen/a/b.py",
        "@@ -11 +11 @@",
        "-    if x is not y and g(x, y) <= 1:",
        "+    if x is not y and g(y, x) <= 1:",
    ]


def test_the_length_that_is_left_has_many_names() -> None:
    mutants = mutants_of("kerngen/a/b.py", b"y = a.reshape(-1, 5)")
    assert {change(mutant)[0] for mutant in mutants} == {"-1, 5", "5"}


def test_what_is_never_equal_is_less_or_not() -> None:
    assert mutants_of("kerngen/a/b.py", b"late = monotonic() > until") == []
    (strict,) = mutants_of("kerngen/a/b.py", b"late = now > until")
    assert change(strict) == (">", ">=")


def test_the_first_bound_of_a_clip_may_come_first() -> None:
    mutants = mutants_of("kerngen/a/b.py", b"clip(x, low, high)")
    assert {change(mutant)[1] for mutant in mutants} == {"high, low", "pass"}


def test_other_random_numbers_are_as_good() -> None:
    module = b"y = default_rng((seed, 1)).uniform(0.5, 2, n + 1) * 3; f(seed + 7)"
    mutants = mutants_of("kerngen/a/b.py", module)
    assert {change(mutant) for mutant in mutants} == {
        ("*", "+"),
        ("3", "4"),
        ("3", "2"),
        ("f(seed + 7)", "pass"),
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of one module, and of one test of it."""
    module, test = tmp_path / "kerngen" / "a" / "b.py", tmp_path / "tests" / "a"
    module.parent.mkdir(parents=True)
    test.mkdir(parents=True)
    (tmp_path / "kerngen" / "__init__.py").touch()
    module.write_text("def f(n):\n    while n > 3:\n        n -= 1\n    return n\n")
    text = "from kerngen.a.b import f\n\ndef test_f():\n    assert f(5) == 3\n"
    (test / "test_b.py").write_text(text)
    return tmp_path


def test_a_sample_depends_on_its_seed_alone(tree: Path) -> None:
    first, again, other = (sample(tree, seed, ["a"]) for seed in (0, 0, 4))
    assert first == again
    assert sorted(map(change, first)) == sorted(map(change, other))
    assert first != other


@pytest.mark.nightly
def test_tests_notice_a_change_or_not(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_START", 4.0)
    mutants = {change(each): each for each in sample(tree, 0, ["a"])}
    bench = Bench(tree, wider=False)
    assert bench.examine(mutants[">", ">="]) is Outcome.CAUGHT
    assert bench.examine(mutants["-", "+"]) is Outcome.TIMED_OUT
    assert bench.examine(mutants["1", "2"]) is Outcome.SURVIVED
    module = tree / "kerngen" / "a" / "b.py"
    assert module.read_bytes() == mutants["1", "2"].source
    module.write_text("def f(n):\n    return n\n")
    with pytest.raises(BaselineError, match="without a change"):
        Bench(tree, wider=False).examine(mutants["1", "2"])


def test_every_folder_has_tests() -> None:
    for folder in every_folder(ROOT):
        own = own_tests(ROOT, Path("kerngen", folder, "a.py"))
        assert own or wider_tests(ROOT, folder), folder
    first, *_ = own_tests(ROOT, Path("kerngen", "verify", "number.py"))
    assert "verify.meaning.number" in (ROOT / first).read_text("utf-8")
