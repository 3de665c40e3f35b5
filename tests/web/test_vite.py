"""The npm package as `npm pack` makes it, and generated modules, bundled by Vite."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.web.browser import ROOT, browser

pytestmark = [pytest.mark.web, pytest.mark.nightly]

WEB = ROOT / "web"
VITE = "vite@7.3.8"

KERNELS = """
struct Pair { a: f32, b: vec3f }

/// The sum of all parts.
kernel sums(x: Pair[n], by: f32 = 1.0) -> y: f32[n] {
    y[i] = by * (x[i].a + x[i].b.x + x[i].b.y + x[i].b.z);
}

/// The mean of each row.
kernel means(x: f32[m, n]) -> y: f32[m] { y[i] = sum[j] x[i, j] / f32(n); }
"""

MAIN = """
import { open, type Vector } from "kerngen";
import { means, Pair, sums } from "./kernels/parts.js";

const ctx = await open();
const x = ctx.tensor([{ a: 1, b: [2, 3, 4] }, { a: 5, b: [6, 7, 8] }], [2], Pair);
const y: Vector<"f32"> = sums(x, { by: 0.5 });
const found = await means(y.reshape([1, 2])).read();
document.body.textContent = `The mean is ${found[0]}.`;
"""


def made(folder: Path) -> Path:
    """Make a project as one would; return what Vite builds of it."""
    done = subprocess.run(
        ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", folder],
        cwd=WEB,
        check=True,
        capture_output=True,
        text=True,
    )
    install = ["npm", "install", "--no-save", "--no-audit", "--no-fund", VITE]
    subprocess.run(install, cwd=folder, check=True, capture_output=True)
    with tarfile.open(folder / done.stdout.split()[-1]) as archive:
        assert "package/LICENSE" in archive.getnames()
        archive.extractall(folder / "node_modules", filter="data")
    (folder / "node_modules" / "package").rename(folder / "node_modules" / "kerngen")
    (folder / "parts.kern").write_text(KERNELS, "utf-8")
    build = ["build", "parts.kern", "--out", "kernels", "--target", "typescript"]
    subprocess.run([sys.executable, "-m", "kerngen", *build], cwd=folder, check=True)
    (folder / "main.ts").write_text(MAIN, "utf-8")
    page = '<!doctype html><body><script type="module" src="./main.ts"></script></body>'
    (folder / "index.html").write_text(page, "utf-8")
    vite = folder / "node_modules" / ".bin" / "vite"
    words = ["build", "--base", "./", "--logLevel", "warn"]
    subprocess.run([vite, *words], cwd=folder, check=True)
    return folder / "dist"


def test_a_project_of_vite(package: Path, tmp_path: Path) -> None:
    assert package.is_dir()
    out = made(tmp_path)
    scripts = [file.read_text("utf-8") for file in out.rglob("*.js")]
    has_texts = {"requestAdapter" in x: "do not overlap" in x for x in scripts}
    assert has_texts == {True: False, False: True}, "production loads texts of errors"
    for name in "firefox", "chromium":
        with browser(name, out) as page:
            shown = page.run("""
                export default async () => {
                  const frame = document.createElement("iframe");
                  frame.src = "/generated/index.html";
                  document.body.append(frame);
                  for (let i = 0; i < 400; i++) {
                    await new Promise((done) => setTimeout(done, 50));
                    const text = frame.contentDocument.body?.textContent.trim();
                    if (text) return text;
                  }
                };
                """)
        assert shown == "The mean is 9."
