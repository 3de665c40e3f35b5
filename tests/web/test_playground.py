"""The playground: what tools/playground makes compiles and runs in a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.report.findings import check_text
from kerngen.syntax.library import Library
from tests.web.browser import ROOT, Browser, browser

pytestmark = pytest.mark.web

OPEN = """
export default async (ctx, given) => {
  const frame = document.createElement("iframe");
  frame.src = `/generated/index.html${given.hash ?? ""}`;
  document.body.append(frame);
  await new Promise((done) => (frame.onload = done));
  const page = frame.contentDocument;
  const $ = (id) => page.getElementById(id);
  const until = async (test) => {
    for (let i = 0; i < 800; i++) {
      const found = test();
      if (found) return found;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`it takes too long: ${$("status").textContent} ${$("found").textContent}`);
  };
  const type = (text) => {
    $("source").value = text;
    $("source").dispatchEvent(new Event("input"));
  };
  BODY
};
"""


@pytest.fixture(scope="module")
def page(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert package.is_dir()
    out = tmp_path_factory.mktemp("playground")
    subprocess.run([ROOT / "tools" / "playground", out], check=True)
    with browser("firefox", out) as started:
        yield started


def run(page: Browser, body: str, **given: Any) -> Any:
    return page.run(OPEN.replace("BODY", body), given)


def test_from_text_to_result(page: Browser) -> None:
    text = "kernel twice(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] + 5.0; }\n"
    found, result, numbers, files = run(
        page,
        """
        type(given.text);
        const button = await until(() =>
          $("inputs").querySelector("select")?.value === "twice" &&
          $("inputs").querySelector("button"));
        button.click();
        await until(() => $("result").textContent);
        return [$("found").textContent, $("result").textContent, $("numbers").textContent,
                [...$("pane").options].map((each) => each.value)];
        """,
        text=text,
    )
    assert found == "No errors."
    assert result.startswith("twice: Tensor(f32[64]) in ")
    values = [float(each) for each in numbers.split()]
    assert len(values) == 64
    assert all(3 <= value <= 7 for value in values)
    assert {"page.js", "page.d.ts", "page.py", "wgsl/page/page.plan"} <= {*files}


@pytest.mark.nightly
def test_it_finds_and_prints_what_python_does_here(page: Browser) -> None:
    wrong = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[j]; }\n"
    right = (ROOT / "dsl" / "norm.kern").read_text("utf-8")
    found, files = run(
        page,
        """
        const worker = new Worker("/generated/worker.js", { type: "module" });
        const ask = (id, text) => new Promise((done) => {
          worker.addEventListener("message", ({ data }) => data.id === id && done(data));
          worker.postMessage({ id, text });
        });
        return [(await ask(1, given.wrong)).found, (await ask(2, given.right)).files];
        """,
        wrong=wrong,
        right=right,
    )
    assert found == json.loads(json.dumps(check_text(wrong, "page.kern")))
    library = Library.of_text(right, "page.kern")
    compiler = Compiler(library, formatted=False, targets=Target)
    own = compiler.compile("page.kern").files
    assert files == {path: data.decode() for path, data in own.items()}


@pytest.mark.nightly
def test_a_fatal_error_is_said_and_the_next_text_works(page: Browser) -> None:
    said, after = run(
        page,
        """
        await until(() => $("status").textContent === "Ready.");
        type(`kernel k(x: f32[n]) -> y: f32[n] { y[i] = ${"-".repeat(20000)}x[i]; }`);
        const said = await until(() =>
          /error|Error/.test($("found").textContent) && $("found").textContent);
        type("kernel one(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }");
        await until(() => $("inputs").querySelector("select")?.value === "one");
        return [said, $("found").textContent];
        """,
    )
    assert "rror" in said
    assert after == "No errors."


def test_a_link_has_the_text(page: Browser) -> None:
    text = run(
        page,
        """
        $("source").value = "// ä, 数\\n";
        $("share").click();
        const hash = frame.contentWindow.location.hash;
        const other = document.createElement("iframe");
        other.src = `/generated/index.html${hash}`;
        document.body.append(other);
        await new Promise((done) => (other.onload = done));
        return other.contentDocument.getElementById("source").value;
        """,
    )
    assert text == "// ä, 数\n"
