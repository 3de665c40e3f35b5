"""A build that is killed, or fails, leaves the old output or the new one, whole."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kerngen.output import transaction
from kerngen.output.files import Generated, declare
from tests.budget import is_night, sampled
from tests.output import interrupt

NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""How systems and their file systems refuse to exchange folders."""

EVERY = "1" if is_night() else "4"
"""By default a write is interrupted at each fourth point."""

MINE = {"notes/mine.txt": "mine"}


class Outcome(NamedTuple):
    """How one interrupted write ended."""

    code: int
    at_once: dict[str, str]
    later: dict[str, str]
    beside: list[str]


def files_of(generated: list[Generated]) -> dict[str, str]:
    content = declare(generated, {}).content
    return {path: data.decode() for path, data in content.items()} | MINE


OLD = files_of(interrupt.OLD)
NEW = files_of(interrupt.NEW)


Run = Callable[[str, str], list[Outcome]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return what interrupts at every point, once for each way."""

    @cache
    def outcomes(how: str, way: str) -> list[Outcome]:
        folder = tmp_path_factory.mktemp("work")
        done = subprocess.run(
            [sys.executable, interrupt.__file__, how, way, str(folder), EVERY],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        found = [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]
        assert found[-1] == Outcome(0, NEW, NEW, ["out"]), found[-1]
        assert len(found) * int(EVERY) > 20
        return found[:-1]

    return outcomes


def test_killed_while_exchanging_the_output_is_whole_at_once(
    run: Run, tmp_path: Path
) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    try:
        vars(transaction)["_exchange"](*folders)
    except OSError as error:
        if error.errno not in (None, *NO_EXCHANGE):
            raise
        pytest.skip(f"the system exchanges no folders in {tmp_path}: {error}")
    found = run("kill", "exchange")
    assert {outcome.code for outcome in found} == {-9}
    assert all(outcome.at_once in (OLD, NEW) for outcome in found)
    assert all(outcome.later == outcome.at_once for outcome in found)
    assert any(outcome.at_once == OLD for outcome in found)
    assert any(outcome.at_once == NEW for outcome in found)


def test_killed_in_place_the_next_command_makes_the_output_whole(run: Run) -> None:
    found = run("kill", "in_place")
    assert all(outcome.later in (OLD, NEW) for outcome in found)
    # Else this would test nothing: some kills do fall in between.
    assert any(outcome.at_once not in (OLD, NEW) for outcome in found)


@pytest.mark.parametrize("way", ["exchange", "in_place"])
def test_failed_the_output_is_the_old_one(run: Run, way: str) -> None:
    found = run("fail", way)
    failed = [outcome for outcome in found if outcome.code == interrupt.FAILED]
    coped = [outcome for outcome in found if outcome.code == interrupt.COPED]
    assert failed
    assert len(failed) + len(coped) == len(found)
    assert all(outcome.later == OLD for outcome in failed)
    assert all(outcome.at_once == NEW for outcome in coped)


@pytest.mark.parametrize("how", sampled(["save", "save_kill"], 2))
def test_what_a_user_saves_meanwhile_is_kept(run: Run, how: str) -> None:
    found = run(how, "exchange")
    wanted = [versions | {"notes/mine.txt": "saved"} for versions in (OLD, NEW)]
    assert all(outcome.later in wanted for outcome in found)
    # Else this would test nothing: some saves do fall before the exchange.
    assert how == "save" or any(outcome.at_once not in wanted for outcome in found)


RUNS = [
    *((how, way) for how in ("kill", "fail") for way in ("exchange", "in_place")),
    ("save", "exchange"),
    pytest.param("save_kill", "exchange", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("how", "way"), RUNS)
def test_nothing_is_left_beside_the_output(run: Run, how: str, way: str) -> None:
    assert all(outcome.beside == ["out"] for outcome in run(how, way))
