"""By day the examples run the shaders that Mesa compiles fastest.

Of a kernel's schedules that is the one whose longest file is the shortest. What is chosen
for large models has tiles of many registers: Mesa compiles one flash attention for 3 to 6
CPU seconds, and the examples' tests took twice as long. `tests/numeric` tests each
schedule, and at night the examples run what they run for a user.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kerngen.plan.select import SelectedDispatches, select
from kerngen.plan.size import ALWAYS
from kerngen.plan.tree import Case, Choice, Sequence, dispatches_in
from kerngen.runtime import Context
from kerngen.runtime.calls.kernel import Dims, Kernel
from kerngen.runtime.calls.planner import Planner
from tests.budget import is_night
from tests.conftest import open_software_context


@pytest.fixture(scope="session")
def ctx() -> Iterator[Context]:
    """Return a context of the examples' own: a context keeps what it chose for a call."""
    with open_software_context() as ctx:
        yield ctx


@pytest.fixture(scope="session")
def chosen_ctx() -> Iterator[Context]:
    """Return a context for tests of what is chosen: no schedule is left out with it."""
    with open_software_context() as ctx:
        yield ctx


@pytest.fixture(autouse=True)
def short_shaders(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let calls run short shaders; a patch of its own, as tests undo theirs."""
    with pytest.MonkeyPatch.context() as patch:
        if not is_night() and "chosen_ctx" not in request.fixturenames:
            patch.setattr(Planner, "_select", select_shortest)
        yield


def select_shortest(planner: Planner, kernel: Kernel, dims: Dims) -> SelectedDispatches:
    """Return what a call runs where each stage has the schedule of the shortest text."""
    info = vars(planner)["_capabilities"].info

    def shortest(body: Sequence) -> Sequence:
        return tuple(
            (
                replace(step, cases=(kept(step),))
                if isinstance(step, Choice) and step.stages
                else step
            )
            for step in body
        )

    def kept(choice: Choice) -> Case:
        offered = [
            replace(case, body=shortest(case.body), when=ALWAYS)
            for case in choice.cases
            if info.offers(case.needs)
        ]
        return min(offered, key=length)

    def length(case: Case) -> int:
        files = {dispatch.file for dispatch in dispatches_in(case.body)}
        return max(len((kernel.folder / file).read_text("utf-8")) for file in files)

    return select(shortest(kernel.body), dims, info)
