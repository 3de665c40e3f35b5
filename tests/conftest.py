"""Options and fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import kerngen.runtime as gpu
from kerngen.runtime.device import backend, shaders
from tests.budget import NIGHT, is_night, name_night
from tests.costs import Costs
from tests.surroundings import settle
from tests.watchdog import Watchdog
from tests.without_triton import hide_triton

settle()
hide_triton()

# Mesa's software adapter compiles what the tests run once: optimising takes longer than
# it saves, and so do wide vectors.  Both are read when the adapter is first opened.
os.environ.setdefault("GALLIVM_PERF", "nopt")
os.environ.setdefault("LP_NATIVE_VECTOR_WIDTH", "128")

# A pipeline of Mesa's has up to 3 MB, and plans keep theirs: with 4,096 of them, a worker of a
# night grew to 16 GB.
for module, limit in ((shaders, "_PIPELINES"), (backend, "_PLANS")):
    setattr(module, limit, 512)

# A test says what is right; how long it takes is for benchmarks.
for profile, budget in (("default", 40), ("nightly", 1000)):
    settings.register_profile(
        profile,
        max_examples=budget,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

INSTALL_SOFTWARE_ADAPTER = (
    "These tests need a software adapter. Debian and Ubuntu have one: "
    "apt-get install mesa-vulkan-drivers."
)

EXPECT_ADAPTER = "KERNGEN_EXPECT_ADAPTER"
"""The environment variable that says a part of the name of the adapter to test on."""


NIGHTLY_TIMEOUT = 1200
"""How many seconds a nightly test may take before it counts as hung; the longest takes 200."""

MARGIN = 300
"""How many seconds later all of the run counts as hung."""


def pytest_configure(config: pytest.Config) -> None:
    """Choose how much is drawn; let processes that run side by side be watched.

    They are ended with theirs.
    """
    # As on the command line: what is compiled lives to the end of its test, mostly, and to
    # look for garbage often takes a sixth of the time of tests that compile.
    gc.set_threshold(100_000, 50, 50)
    is_quick = "not nightly" in config.option.markexpr
    settings.load_profile("default" if is_quick else "nightly")
    name_night()
    config.pluginmanager.register(Costs())
    if sys.platform == "win32":
        return  # it has no sessions
    if hasattr(config, "workerinput"):
        os.setsid()
    elif getattr(config.option, "dist", "no") != "no":
        limit = float(config.getini("timeout")) if is_quick else NIGHTLY_TIMEOUT
        config.pluginmanager.register(Watchdog(limit + MARGIN))


def pytest_report_header() -> str | None:
    """Print which part of the sweeps that rotate a night runs, and how to run it again."""
    return f"sweeps that rotate: {NIGHT}={name_night()}" if is_night() else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no items of nightly parameters by day: there are twice as many of them.

    pytest would make 33,000 items and leave out 23,000, in a third of the collection.
    Where nothing else is left one of them is kept, which pytest then leaves out.
    """
    if "not nightly" not in metafunc.config.option.markexpr:
        return
    whole = metafunc.definition.get_closest_marker("nightly") is not None
    own = metafunc.definition.own_markers
    own[:] = [_by_day(mark, whole) for mark in own]


def _by_day(mark: pytest.Mark, whole: bool) -> pytest.Mark:
    """Return a mark; one of parameters without the nightly ones, or of one if all are."""
    listed = not callable(mark.kwargs.get("ids", str))
    if mark.name != "parametrize" or listed or len(mark.args) < 2:
        return mark
    names, values, *others = mark.args
    values = list(values)
    kept = [] if whole else [each for each in values if not _is_nightly(each)]
    few = kept or values[:1]
    return pytest.mark.parametrize(names, few, *others, **mark.kwargs).mark


def _is_nightly(parameters: object) -> bool:
    marks = getattr(parameters, "marks", ())
    return any(mark.name == "nightly" for mark in marks)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.timeout(NIGHTLY_TIMEOUT))


def pytest_collection_finish() -> None:
    """Let the collector of garbage leave out what lasts as long as the run.

    It would go through all items and modules again and again: 6 % of the time.
    """
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write the golden files anew instead of comparing with them",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file, or write it with --update-goldens."""
    update = bool(request.config.getoption("--update-goldens"))

    def check(file: Path, text: str) -> None:
        if update:
            file.write_text(text, encoding="utf-8", newline="\n")
        assert file.is_file(), f"{file.name} is missing; run with --update-goldens"
        assert text == file.read_bytes().decode("utf-8")

    return check


def open_software_context() -> gpu.Context:
    """Open the software adapter, or fail: a missing one must not look like success."""
    try:
        ctx = gpu.open(adapter="software")
    except gpu.NoAdapter as error:
        pytest.fail(f"{error} {INSTALL_SOFTWARE_ADAPTER}")
    expected = os.environ.get(
        EXPECT_ADAPTER, "llvmpipe" if os.environ.get("CI") else ""
    )
    if expected not in ctx.adapter_name:
        pytest.fail(f"Expected {expected}, got {ctx!r}. {INSTALL_SOFTWARE_ADAPTER}")
    return ctx


@pytest.fixture(scope="session")
def ctx() -> Iterator[gpu.Context]:
    """Return one context on the software adapter, shared by all tests."""
    with open_software_context() as ctx:
        yield ctx


@pytest.fixture(params=["device", "reference"])
def either(request: pytest.FixtureRequest, ctx: gpu.Context) -> Iterator[gpu.Context]:
    """Return a context of each kind: both check alike."""
    if request.param == "device":
        yield ctx
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


@pytest.fixture(scope="module")
def always_shared() -> Iterator[None]:
    """Let workgroups share tiles wherever that saves a turn: those of tests are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kerngen.schedule.gemm.shares.LEAST_WORK", 1)
        patch.setattr("kerngen.schedule.gemm.shares.JOIN_COST", (0, 0))
        patch.setattr("kerngen.schedule.gemm.shares.FAR_APART", 2**30)
        patch.setattr("kerngen.schedule.gemm.shares.SLOTS_OF_TURN", 2**30)
        patch.setattr("kerngen.schedule.gemm.shares.LEAST_WAVE", (10, 10))
        yield
