"""The standard kernels as ES modules, and browsers that run them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerngen.emit.targets import Target
from tests.web.browser import ROOT, Browser, browser
from tests.web.built import build


@pytest.fixture(scope="session")
def package() -> Path:
    """The npm package, compiled."""
    web = ROOT / "web"
    tsc = web / "node_modules" / ".bin" / "tsc"
    assert tsc.exists(), "run tools/test-web, which installs what is needed"
    subprocess.run([tsc, "-p", web], check=True)
    subprocess.run(["node", "bundle.mjs"], cwd=web, check=True)
    return web / "dist"


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The standard kernels, built for the web."""
    out = tmp_path_factory.mktemp("generated")
    build(sorted((ROOT / "dsl").glob("*.kern")), out, Target.TYPESCRIPT)
    return out


@pytest.fixture(scope="session")
def firefox(package: Path, generated: Path) -> Iterator[Browser]:
    """Firefox, on the machine's Vulkan adapter."""
    assert package.is_dir()
    with browser("firefox", generated) as page:
        yield page


@pytest.fixture(scope="session")
def chromium(package: Path, generated: Path) -> Iterator[Browser]:
    """Chromium, on its own software adapter, SwiftShader."""
    assert package.is_dir()
    with browser("chromium", generated) as page:
        yield page


@pytest.fixture(scope="session")
def production(package: Path, generated: Path) -> Iterator[Browser]:
    """Firefox, with the file of the package that production loads."""
    assert package.is_dir()
    with browser("firefox", generated, "production") as page:
        yield page
