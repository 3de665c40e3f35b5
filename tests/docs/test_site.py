"""The site can be read without a network; `tools/test` builds it."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import cast

import pytest
from mkdocs.exceptions import PluginError

from tests.project.tree import ROOT

HOOKS = runpy.run_path(str(ROOT / "tools" / "mkdocs_hooks.py"))
on_post_page = cast("Callable[[str], str]", HOOKS["on_post_page"])


@pytest.mark.parametrize(
    "fetching",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<img alt="" src="http://example.org/a.png">',
    ],
)
def test_a_page_that_fetches_something_is_refused(fetching: str) -> None:
    with pytest.raises(PluginError, match=r"example\.org"):
        on_post_page(f"<p>{fetching}</p>")


def test_a_link_to_elsewhere_is_none() -> None:
    page = '<a href="https://example.org"><img src="pipeline.svg"></a>'
    assert on_post_page(page) == page
