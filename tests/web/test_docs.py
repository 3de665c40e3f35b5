"""The page of the documentation about browsers, as a reader would follow it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of
from tests.web.browser import ROOT, browser

pytestmark = pytest.mark.web


def test_the_page_is_right(package: Path, tmp_path: Path) -> None:
    blocks = [*blocks_of(ROOT / "docs" / "web.md")]
    for block in blocks:
        if block.title:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
    (command,) = (block.text for block in blocks if block.language == "console")
    words = command.removeprefix("$ kerngen ").split()
    subprocess.run([sys.executable, "-m", "kerngen", *words], cwd=tmp_path, check=True)
    shutil.copytree(package, tmp_path / "site" / "kerngen")
    with browser("firefox", tmp_path / "site") as page:
        shown = page.run("""
            export default async () => {
              const frame = document.createElement("iframe");
              frame.src = "/generated/index.html";
              document.body.append(frame);
              for (let i = 0; i < 400; i++) {
                await new Promise((done) => setTimeout(done, 50));
                const text = frame.contentDocument.querySelector("#result")?.textContent;
                if (text && text !== "...") return text;
              }
            };
            """)
    assert shown == "The means are 2 and 5."
    assert f"The page shows `{shown}`" in (ROOT / "docs" / "web.md").read_text("utf-8")
