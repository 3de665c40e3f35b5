"""Kernels that use much of the language at once, in both browsers against float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from kerngen.emit.targets import Target
from kerngen.runtime.calls.kernel import Kernel
from tests.compile import built
from tests.web.browser import Browser, browser
from tests.web.built import build
from tests.web.calls import begin, results
from tests.web.spread import SOURCE, TASKS, Result

pytestmark = pytest.mark.web

SIZES = (1, 6, 37)


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, Kernel]]:
    with ExitStack() as stack:
        yield {each.name: each for each in stack.enter_context(built(SOURCE))}


@pytest.fixture(
    scope="module",
    params=["firefox", pytest.param("chromium", marks=pytest.mark.nightly)],
)
def page(
    package: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Browser]:
    assert package.is_dir()
    out = tmp_path_factory.mktemp("spread")
    (out / "spread.kern").write_text(SOURCE, "utf-8")
    build([out / "spread.kern"], out, Target.TYPESCRIPT)
    with browser(request.param, out, "production") as started:
        yield started


SLOW = {"attention_by_v"}
"""A driver compiles its tiles for 15 seconds."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name in SLOW else [])
        for name in TASKS
    ],
)
def test_numpy_says_the_same(
    page: Browser, kernels: dict[str, Kernel], name: str
) -> None:
    task, kernel = TASKS[name], kernels[name]
    meaning: Callable[..., Result] = task.meaning
    if name == "halves" and "shader-f16" not in page.do("describe")["features"]:
        return
    for size in SIZES:
        arrays = task.arguments(np.random.default_rng(size), size)
        call = begin(page, "spread", kernel, arrays, task.scalars)
        exact = (x.astype(np.float64) if x.dtype.kind == "f" else x for x in arrays)
        wanted = meaning(*exact)
        all_wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for got, want in zip(results(page, kernel, call), all_wanted, strict=True):
            np.testing.assert_allclose(got, want, 2e-4, 2e-4, err_msg=f"n = {size}")
