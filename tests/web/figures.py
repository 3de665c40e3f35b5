"""How large and how fast the package and the playground are: `python -m tests.web.figures`.

Each figure has a bound, which `docs/web.md` promises.  Times are those of an idle machine;
Chromium measures them, as Firefox rounds its clock.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any, Final, final

from kerngen.emit.targets import Target
from tests.web.browser import ROOT, browser
from tests.web.built import build

WEB: Final = ROOT / "web"

COMPRESSED_BY_BROTLI: Final = """
import fs from "node:fs";
import zlib from "node:zlib";
const text = fs.readFileSync(0);
console.log(zlib.brotliCompressSync(text).length);
"""

BROTLI: Final = """
import fs from "node:fs";
import zlib from "node:zlib";
let sum = 0;
for (const file of process.argv.slice(1)) {
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 9 };
  sum += zlib.brotliCompressSync(fs.readFileSync(file), { params }).length;
}
console.log(sum);
"""

VISIT: Final = """
export default async (ctx, { text, edits }) => {
  const tasks = [];
  const watch = new PerformanceObserver((list) => tasks.push(...list.getEntries()));
  watch.observe({ type: "longtask" });
  const frame = document.createElement("iframe");
  [frame.width, frame.height] = [1000, 800];
  const begin = performance.now();
  frame.src = "/generated/index.html";
  document.body.append(frame);
  await new Promise((done) => (frame.onload = done));
  const page = frame.contentDocument;
  const $ = (id) => page.getElementById(id);
  const until = async (test) => {
    for (let i = 0; i < 6000; i++) {
      if (test()) return;
      await new Promise((done) => setTimeout(done, 10));
    }
    throw new Error(`it takes too long: ${page.body.innerText}`);
  };
  await until(() => /^Ready|can't be/.test($("status").textContent));
  const ready = performance.now() - begin;
  await until(() => $("kernel")?.value === "softmax");
  const compiled = performance.now() - begin;
  const answered = (value) => new Promise((done) => {
    const watch = new MutationObserver(() => {
      watch.disconnect();
      done(performance.now() - start);
    });
    watch.observe($("found"), { childList: true });
    $("source").value = value;
    const start = performance.now();
    $("source").dispatchEvent(new Event("input"));
  });
  const times = [];
  for (let i = 0; i < edits; i++) {
    // Every other one is wrong, as what one types is.
    times.push(await answered(`${text}// ${i}\\n${i % 2 ? "kernel" : ""}`));
    await new Promise((done) => setTimeout(done, 100));
  }
  frame.remove();
  return [ready, compiled, times, Math.max(0, ...tasks.map((each) => each.duration))];
};
"""

RECORD: Final = """
import { softmax } from "http://HOST/generated/softmax.js";
export default async (ctx) => {
  const x = ctx.tensor(new Float32Array(256), [4, 64]);
  const out = ctx.empty([4, 64], "f32");
  const calls = 500;
  const best = async (record) => {
    let least = Infinity;
    for (let i = 0; i < 60; i++) {
      const begin = performance.now();
      const submitted = record();
      least = Math.min(least, performance.now() - begin);
      await submitted;
      await ctx.device.queue.onSubmittedWorkDone();
    }
    return (1000 * least) / calls;
  };
  const ours = () => {
    for (let i = 0; i < calls; i++) softmax(x, { out });
    return ctx.submit();
  };
  await ours();
  const ops = [];
  const add = ctx.recorder.add;
  ctx.recorder.add = (op) => { ops.push(op); add(op); };
  softmax(x, { out });
  ctx.recorder.add = add;
  await ctx.submit();
  const { step: { shader, x: groups, y }, group } = ops.find((op) => op.step);
  const alone = () => {
    const encoder = ctx.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let i = 0; i < calls; i++) {
      pass.setPipeline(shader.pipeline);
      pass.setBindGroup(0, group, [0]);
      pass.dispatchWorkgroups(groups, y);
    }
    pass.end();
    ctx.device.queue.submit([encoder.finish()]);
  };
  return (await best(ours)) - (await best(alone));
};
"""

FRAME: Final = """
import { react, shade } from "http://HOST/generated/reaction.js";
const [SIDE, STEPS] = [384, 16];
export default async (ctx) => {
  const canvas = new OffscreenCanvas(SIDE, SIDE).getContext("2d");
  let [cells, next] = [0, 1].map(() => ctx.zeros([SIDE, SIDE], "vec2f"));
  const rgba = ctx.empty([SIDE, SIDE], "u32");
  let least = Infinity;
  for (let frame = 0; frame < 40; frame++) {
    const begin = performance.now();
    for (let i = 0; i < STEPS; i++) {
      react(cells, { feed: 0.05, kill: 0.06, out: next });
      [cells, next] = [next, cells];
    }
    shade(cells, { out: rgba });
    const reading = rgba.read();
    const recorded = performance.now();
    const values = await reading;
    const read = performance.now();
    const colours = new Uint8ClampedArray(values.buffer);
    canvas.putImageData(new ImageData(colours, SIDE), 0, 0);
    least = Math.min(least, recorded - begin + performance.now() - read);
  }
  return least;
};
"""
"""A frame of the example page: 16 steps, the picture and its reading, without the waiting."""


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, and what it may be at most."""

    what: str
    value: float
    most: float
    unit: str

    @property
    def line(self) -> str:
        """Return a row of the table."""
        ends = "" if self.value <= self.most else "  too much"
        return f"{self.what:44} {self.value:8.2f} {self.most:8.2f} {self.unit}{ends}"


def package_sizes() -> Iterator[Figure]:
    """Yield the sizes of the package as a page loads it: one file, minified.

    In production the texts of errors are not loaded, until there is an error.  Nor are
    WGSL's dot products of bytes, until a shader calls one.
    """
    core = _compressed((WEB / "dist" / "min" / "kerngen.js").read_bytes())
    program = str(WEB / "node_modules" / ".bin" / "esbuild")
    words = [program, "dist/index.js", "--bundle", "--minify", "--format=esm"]
    text = subprocess.run(words, cwd=WEB, check=True, capture_output=True).stdout
    whole = _compressed(text)
    yield Figure("npm package in production, minified, gzip -9", core[0], 8.192, "kB")
    yield Figure("npm package in production, minified, brotli", core[1], 7.7, "kB")
    yield Figure("npm package with texts, minified, gzip -9", whole[0], 12.6, "kB")
    yield Figure("npm package with texts, minified, brotli", whole[1], 11.6, "kB")


def _compressed(text: bytes) -> list[float]:
    """Return the kilobytes of a text by gzip and by brotli."""
    node = ["node", "--input-type=module", "--eval", COMPRESSED_BY_BROTLI]
    done = subprocess.run(node, input=text, check=True, capture_output=True)
    gzip = subprocess.run(["gzip", "-9"], input=text, check=True, capture_output=True)
    return [len(gzip.stdout) / 1e3, int(done.stdout) / 1e3]


def download(playground: Path) -> Figure:
    """Return what the first visit of the playground loads."""
    files = [str(each) for each in sorted(playground.rglob("*")) if each.is_file()]
    words = ["node", "--input-type=module", "--eval", BROTLI, *files]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return Figure("playground, all files, brotli", int(done.stdout) / 1e6, 8, "MB")


def visits(playground: Path) -> Iterator[Figure]:
    """Visit the playground for the first time, and three times more."""
    text = (ROOT / "dsl" / "loss.kern").read_text("utf-8")
    given = {"text": text, "edits": 40}
    with browser("chromium", playground) as page:
        # A browser that has just started is busy with itself.
        page.do("describe")
        sleep(4)
        first: Any = page.run(VISIT, {**given, "edits": 0})
        later: list[Any] = [page.run(VISIT, given) for _ in range(3)]
    edits = [time for visit in later for time in visit[2]]
    yield Figure("playground ready, first visit", first[0] / 1e3, 4, "s")
    yield Figure("its example compiled", first[1] / 1e3, 5, "s")
    yield Figure("ready, later visits", median(v[0] for v in later) / 1e3, 1, "s")
    yield Figure("its example compiled", median(v[1] for v in later) / 1e3, 2, "s")
    yield Figure("edit to diagnostics, median", median(edits), 150, "ms")
    yield Figure("edit to diagnostics, 19 of 20", sorted(edits)[-6], 300, "ms")
    yield Figure("longest block of the page", max(v[3] for v in later), 50, "ms")


def recording(folder: Path) -> Iterator[Figure]:
    """Yield what recording a call takes beyond what WebGPU does, and a frame's calls."""
    reaction = ROOT / "examples" / "web" / "reaction" / "reaction.kern"
    build([ROOT / "dsl" / "softmax.kern"], folder, Target.TYPESCRIPT)
    build([reaction], folder, Target.TYPESCRIPT)
    with browser("chromium", folder) as page:
        more: float = page.run(RECORD)
        frame: float = page.run(FRAME)
    yield Figure("recording a call, beyond WebGPU's own time", more, 5, "µs")
    yield Figure("a frame of the reaction, the page's own work", frame, 2, "ms")


def figures(folder: Path) -> Iterator[Figure]:
    """Measure all of them; what is built goes to a folder."""
    playground = folder / "playground"
    subprocess.run([ROOT / "tools" / "playground", playground], check=True)
    yield from package_sizes()
    yield download(playground)
    yield from visits(playground)
    yield from recording(folder / "generated")


def main() -> None:
    """Print them as a table: what, how much, at most, and the unit."""
    with tempfile.TemporaryDirectory() as folder:
        for each in figures(Path(folder)):
            print(each.line, flush=True)


if __name__ == "__main__":
    main()
