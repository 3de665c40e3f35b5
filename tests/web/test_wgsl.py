"""What node compiles of a file of shaders for an entry point: what Python compiles of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerngen.plan.wgsl import Code, only
from tests.web import node
from tests.web.browser import ROOT

pytestmark = pytest.mark.web

JOB = """
import { only } from "@/wgsl.js";
export default (pairs) => pairs.map(([text, entry]) => only(text, entry));
"""


def test_entry_points_are_the_same_as_in_python(tmp_path: Path) -> None:
    files = sorted((ROOT / "generated").rglob("*.wgsl"))[::20]
    texts = [file.read_text("utf-8") for file in files]
    codes = [(text, Code(text)) for text in texts]
    pairs = [(t, x) for t, c in codes for x in c.texts if c.is_entry_point(x)]
    assert len(pairs) > 2 * len(files) > 40
    assert node.run(tmp_path, JOB, pairs) == [only(*pair) for pair in pairs]
