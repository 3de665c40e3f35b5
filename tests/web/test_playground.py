"""The playground: what tools/playground makes compiles and runs in a browser."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerngen.report.page import check_page, compile_page
from kerngen.syntax.highlight import KernLexer
from tests.docs.blocks import blocks_of
from tests.web.browser import ROOT, Browser, browser

pytestmark = pytest.mark.web

OPEN = """
const begin = async ({ hash = "", before, fresh }) => {
  if (!fresh && !before && globalThis.kept) return globalThis.kept;
  const frame = document.createElement("iframe");
  [frame.width, frame.height] = [1000, 800];
  if (before) {
    const html = await (await fetch("/generated/index.html")).text();
    const head = `<head><base href="/generated/" /><script>${before}</script>`;
    frame.srcdoc = html.replace("<head>", head);
  } else frame.src = `/generated/index.html${hash}`;
  document.body.append(frame);
  await new Promise((done) => (frame.onload = done));
  if (!fresh && !before) globalThis.kept = frame;
  return frame;
};

export default async (ctx, given) => {
  const frame = await begin(given);
  const page = frame.contentDocument;
  const $ = (id) => page.getElementById(id);
  const until = async (test) => {
    for (let i = 0; i < 1600; i++) {
      const found = test();
      if (found) return found;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`it takes too long: ${page.body.innerText}`);
  };
  const type = (text) => {
    $("source").value = text;
    $("source").dispatchEvent(new Event("input"));
  };
  await until(() => $("source").value);
  try { BODY } finally { if (frame !== globalThis.kept) frame.remove(); }
};
"""
"""What tests run: a page that they share, unless one asks for a `fresh` one."""


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
    found, result, numbers, own, panes = run(
        page,
        """
        type(given.text);
        const button = await until(() => $("kernel")?.value === "twice" &&
          $("inputs").querySelector("button"));
        const shown = async () => {
          $("result").textContent = "";
          button.click();
          await until(() => / ms, by /.test($("result").textContent));
          return $("numbers").textContent;
        };
        const numbers = await shown();
        const fill = page.querySelector("[data-name='fill x']");
        fill.value = "these:";
        fill.dispatchEvent(new Event("change"));
        page.querySelector("[data-name='own x']").value = "[1, 2.5]";
        const own = await shown();
        const panes = {};
        for (const tab of $("tabs").children) {
          tab.click();
          panes[tab.textContent] = $("pane").textContent;
        }
        return [$("found").textContent, $("result").textContent, numbers, own, panes];
        """,
        text=text,
    )
    assert found == "No errors."
    assert result.startswith("twice: ")
    values = [float(each) for each in numbers.split()]
    assert len(values) == 64
    assert all(3 <= value <= 7 for value in values)
    assert own.split() == ["7", "10"] * 32
    assert "when n % 4 == 0 | run twice.map(x, y*)" in panes["Schedules"]
    assert "@compute @workgroup_size(" in panes["Schedules"]
    assert "def twice(x: Vector[f32]" in panes["Python"]
    assert "def twice_reference(" in panes["NumPy"]
    assert "export declare function twice" in panes["TypeScript"]
    assert "TwiceUniform  4 bytes" in panes["Layout"]


def test_what_is_wrong_is_underlined_with_its_hint(page: Browser) -> None:
    found, marked, caret = run(
        page,
        """
        await until(() => $("status").textContent.startsWith("Ready"));
        type("// \U0001d4b3\\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = x[j]; }");
        await until(() => /KG0401/.test($("found").textContent));
        $("found").querySelector("button").click();
        return [$("found").textContent, $("colours").querySelector(".marked").textContent,
                $("source").value.slice($("source").selectionStart)];
        """,
    )
    assert "2:45 error[KG0401]" in found
    assert "To sum over it, write 'sum[j] ...'." in found
    assert (marked, caret) == ("j", "j]; }")


def test_panes_of_an_older_text_are_dimmed(page: Browser) -> None:
    """A ';' is missing at the end of a line, which is underlined where one sees it."""
    found, marked, then, after = run(
        page,
        """
        type("kernel good(x: f32[n]) -> y: f32[n] {\\n    y[i] = x[i];\\n}\\n");
        await until(() => $("kernel")?.value === "good");
        const look = () => page.querySelector("main").className;
        type($("source").value.replace(";", ""));
        await until(() => /KG0111/.test($("found").textContent));
        const found = $("found").textContent;
        const marked = $("colours").querySelector(".marked").textContent;
        const then = look();
        type($("source").value.replace("]\\n", "];\\n"));
        await until(() => $("found").textContent === "No errors.");
        return [found, marked, then, look()];
        """,
    )
    assert found.endswith("missing.The rest is of the last text without errors.")
    assert (marked, then, after) == ("]", "stale", "")


@pytest.mark.parametrize(
    ("length", "error"),
    [
        ("", "TypeError: 'n' has no number."),
        ("2.5", "ShapeError: Lengths are integers from 0 to 2^31 - 1, not [2.5]."),
        ("1e12", "ShapeError: Lengths are integers from 0 to 2^31 - 1, not [10000000"),
        ("2147483647", "LimitError: A tensor of shape [2147483647] takes 8589934588"),
    ],
)
def test_lengths_that_no_tensor_has_are_refused(
    page: Browser, length: str, error: str
) -> None:
    said = run(
        page,
        """
        type("kernel long(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }");
        await until(() => $("kernel")?.value === "long");
        const field = page.querySelector("[data-name=n]");
        field.value = given.length;
        $("inputs").querySelector("button").click();
        await until(() => /Error/.test($("result").textContent));
        return $("result").textContent;
        """,
        length=length,
    )
    assert said.startswith(error)


def test_names_that_all_objects_have_something_of(page: Browser) -> None:
    values = run(
        page,
        """
        type("kernel odd(toString: f32[constructor], valueOf: f32 = 2.5) -> y: f32[constructor]"
          + " { y[i] = toString[i] * valueOf; }");
        await until(() => $("kernel")?.value === "odd");
        const values = [...$("inputs").querySelectorAll("input[type=number]")].map((x) => x.value);
        $("inputs").querySelector("button").click();
        await until(() => /^odd: /.test($("result").textContent));
        return values;
        """,
    )
    assert values == ["64", "2.5", "1"]


def test_tokens_are_those_of_pygments(page: Browser) -> None:
    texts = [each.read_text("utf-8") for each in sorted((ROOT / "dsl").glob("*.kern"))]
    texts += [
        "schedule a_*, b.c when n > 4 { map } // \U0001d4b3",
        'use "x',
        "@ reason sum [ 0xF 1e-5",
    ]
    found = page.run(
        """
        import { lexer } from "http://HOST/generated/highlight.js";
        export default async (ctx, texts) => {
          const tokens = lexer(await (await fetch("http://HOST/generated/highlight.json")).json());
          return texts.map(tokens);
        };
        """,
        texts,
    )
    for text, tokens in zip(texts, found, strict=True):
        own = [
            [str(kind).removeprefix("Token."), part]
            for _, kind, part in KernLexer().get_tokens_unprocessed(text)
        ]
        assert [each for each in tokens if each[1]] == own


def test_no_network_is_needed_afterwards(page: Browser) -> None:
    folder = page.folders["generated"]
    run(
        page,
        """
        await until(() => $("status").textContent.startsWith("Ready"));
        await frame.contentWindow.navigator.serviceWorker.ready;
        return true;
        """,
    )
    hidden = folder.with_name("hidden")
    folder.rename(hidden)
    try:
        status, found = run(
            page,
            """
            await until(() => $("status").textContent.startsWith("Ready"));
            type("kernel one(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }");
            await until(() => $("kernel")?.value === "one");
            return [$("status").textContent, $("found").textContent];
            """,
            fresh=True,
        )
    finally:
        hidden.rename(folder)
    assert status.startswith("Ready")
    assert found == "No errors."


def test_without_webgpu_it_compiles_and_says_so(page: Browser) -> None:
    said, result = run(
        page,
        """
        await until(() => $("kernel")?.value === "softmax");
        const said = $("result").textContent;
        $("inputs").querySelector("button").click();
        await until(() => $("result").textContent !== "Running ...");
        return [said, $("result").textContent];
        """,
        before="Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined });",
    )
    assert said == (
        "There is no WebGPU here: use a browser that has it, in a page of https or "
        "localhost. Here it compiles, and can't run."
    )
    assert result.startswith("NoAdapter: There is no WebGPU here")


def test_each_program_of_the_tutorial_opens_by_its_link(page: Browser) -> None:
    hooks = runpy.run_path(str(ROOT / "tools" / "mkdocs_hooks.py"))
    links: list[str] = []
    programs: list[str] = []
    for file in sorted((ROOT / "docs" / "tutorial").glob("*.md")):
        text = hooks["with_links"](file.read_text("utf-8"), "../")
        links += re.findall(r'href="\.\./playground/index\.html(#[^"]*)"', text)
        blocks = [each for each in blocks_of(file) if each.language == "rust"]
        programs += [each.text for each in blocks if not each.text.startswith("use ")]
    assert len(programs) > 5
    found = run(
        page,
        """
        const found = [];
        for (const link of given.links) {
          $("found").textContent = "?";
          frame.contentWindow.location.hash = link;
          await until(() => $("found").textContent !== "?");
          found.push([$("source").value, $("found").querySelectorAll(".error").length]);
        }
        return found;
        """,
        links=links,
    )
    expected = [
        [
            text,
            sum(each["severity"] == "error" for each in json.loads(check_page(text))),
        ]
        for text in programs
    ]
    assert found == expected


@pytest.mark.nightly
def test_a_fatal_error_is_said_and_the_next_text_works(page: Browser) -> None:
    said, after = run(
        page,
        """
        await until(() => $("status").textContent.startsWith("Ready"));
        type(`kernel k(x: f32[n]) -> y: f32[n] { y[i] = ${"-".repeat(20000)}x[i]; }`);
        const said = await until(() =>
          /error|Error/.test($("found").textContent) && $("found").textContent);
        type("kernel one(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }");
        await until(() => $("kernel")?.value === "one");
        return [said, $("found").textContent];
        """,
    )
    assert "rror" in said
    assert after == "No errors."


@pytest.mark.nightly
@pytest.mark.parametrize("spoilt", [False, True])
def test_a_later_visit_begins_with_pythons_memory(page: Browser, spoilt: bool) -> None:
    """Memory that Pyodide does not read is dropped, and all is loaded again."""
    kept, compiled = run(
        page,
        """
        const memory = async () => {
          for (const name of await caches.keys()) {
            const cache = await caches.open(name);
            const found = await cache.match("/generated/memory");
            if (found) return [cache, found];
          }
        };
        await until(() => $("kernel")?.value);
        for (let i = 0; i < 600 && !(await memory()); i++)
          await new Promise((done) => setTimeout(done, 50));
        if (given.spoilt)
          await (await memory())[0].put("/generated/memory", new Response(new Uint8Array(1e6)));
        const worker = new Worker("/generated/worker.js", { type: "module" });
        const channel = new Promise((done, fail) => {
          worker.onmessage = ({ data }) => (data.fatal ? fail(new Error(data.fatal)) : data.ready || done(data));
        });
        worker.postMessage({ what: "compile", text: given.text });
        const { result } = await channel;
        const [, kept] = (await memory()) ?? [];
        worker.terminate();
        return [(await kept?.arrayBuffer())?.byteLength ?? 0, result];
        """,
        spoilt=spoilt,
        text=(ROOT / "dsl" / "softmax.kern").read_text("utf-8"),
    )
    assert compiled == json.loads(
        compile_page((ROOT / "dsl" / "softmax.kern").read_text("utf-8"))
    )
    assert (kept > 30e6) is not spoilt


def test_a_link_has_the_text(page: Browser) -> None:
    text = run(
        page,
        """
        type("// ä, 数\\n");
        $("share").click();
        const { hash } = await until(() => frame.contentWindow.location.hash.length > 1 &&
          frame.contentWindow.location);
        const other = document.createElement("iframe");
        other.src = `/generated/index.html${hash}`;
        document.body.append(other);
        await new Promise((done) => (other.onload = done));
        const source = other.contentDocument.getElementById("source");
        await until(() => source.value);
        return source.value;
        """,
    )
    assert text == "// ä, 数\n"


def test_a_link_that_is_broken_is_said(page: Browser) -> None:
    """Also when the compiler is there, which is said in the same place."""
    said = run(
        page,
        """
        await until(() => $("status").textContent.startsWith("Ready"));
        return $("status").textContent;
        """,
        fresh=True,
        hash="#%%%",
    )
    assert said.endswith("The link has no text that can be read; this is an example.")


def test_a_link_that_is_not_copied_is_in_the_address_bar(page: Browser) -> None:
    said = run(
        page,
        """
        const writeText = async () => { throw new Error("not allowed"); };
        const { navigator } = frame.contentWindow;
        Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
        $("share").click();
        await until(() => $("status").textContent.startsWith("The link"));
        delete navigator.clipboard;
        return $("status").textContent;
        """,
    )
    assert said == "The link is in the address bar."


def test_a_kernel_of_any_parameters_runs_as_the_form_begins(page: Browser) -> None:
    fields, numbers = run(
        page,
        """
        type(given.text);
        const button = await until(() => $("kernel")?.value === "placed" &&
          $("inputs").querySelector("button"));
        const fields = ["v", "m", "s"].map((name) => page.querySelector(`[data-name=${name}]`).value);
        button.click();
        await until(() => / ms, by |Error/.test($("result").textContent));
        return [fields, $("numbers").textContent || $("result").textContent];
        """,
        text="struct S { a: f32, v: vec2f, w: f32[2] }\n"
        "kernel placed(x: f32[n], v: vec3f, m: mat2x3f, s: S, k: u32) -> y: f32[n] {\n"
        "    y[i] = v.x + m[1].z + s.a + s.v.y + s.w[1] + f32(k) + 0.0 * x[i];\n}\n",
    )
    assert fields == [
        "[1, 1, 1]",
        "[[1, 1, 1], [1, 1, 1]]",
        '{"a":1, "v":[1, 1], "w":[1, 1]}',
    ]
    assert {*numbers.split()} == {"6"}
