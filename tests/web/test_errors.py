"""Errors of the package in node: their texts, which production loads when there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web import node

pytestmark = pytest.mark.web

PRODUCTION = """
import { module, struct, AbiError, KerngenError } from "@/core.js";
const late = () => new Promise((done) => setTimeout(done, 100));
export default async () => {
  const found = [];
  for (const run of [
    () => module(1, () => new URL("file:///x.wgsl"), "kerngen plan 6 | ..."),
    () => struct("Pair", 8, [["a", "f32", 0], ["b", "f32", 4]]).pack({ a: 1e39, b: 0 }),
  ])
    try {
      run();
    } catch (error) {
      const at_once = error.message;
      await late();
      const classes = [error instanceof KerngenError, error instanceof AbiError];
      found.push([error.name, ...classes, at_once, error.message]);
    }
  return found;
};
"""


def test_production_has_the_texts_a_moment_later(package: Path, tmp_path: Path) -> None:
    """From then on they are there at once.

    A module of another version, which had its plan as a text, is refused first.
    """
    assert package.is_dir()
    stale, large = node.run(tmp_path, PRODUCTION, None)
    text = (
        "A generated module is for version 1 of the npm package 'kerngen', and this one "
        "is 3. Run 'kerngen build' with the kerngen that the package belongs to."
    )
    assert stale == ["AbiError", True, True, "abi (1,3)", text]
    text = "'Pair.a' is 1e+39; f32 holds -3.4028234663852886e+38 to 3.4028234663852886e+38."
    assert large == ["UniformRangeError", True, False, text, text]


DEVELOPMENT = PRODUCTION.replace("@/core.js", "@/index.js")


def test_else_texts_are_there_at_once(package: Path, tmp_path: Path) -> None:
    assert package.is_dir()
    for _, _, _, at_once, later in node.run(tmp_path, DEVELOPMENT, None):
        assert at_once == later
        assert at_once.endswith((".", "+38."))
