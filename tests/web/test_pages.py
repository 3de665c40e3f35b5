"""The example pages, as tools/example-pages makes them: drawn on, in a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from math import erf
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import (
    load_file,  # pyright: ignore[reportUnknownVariableType]  # PathLike has no argument
)

from tests.web.browser import ROOT, Browser, browser

pytestmark = pytest.mark.web

WEIGHTS: Final = ROOT / "examples" / "web" / "digits" / "digits.safetensors"

OPEN: Final = """
export default async (ctx, given) => {
  const frame = document.createElement("iframe");
  frame.src = `/generated/${given.page}/index.html`;
  [frame.width, frame.height] = [800, 600];
  document.body.append(frame);
  await new Promise((done) => (frame.onload = done));
  const $ = (id) => frame.contentDocument.getElementById(id);
  const until = async (test) => {
    for (let i = 0; i < 600; i++) {
      const found = test();
      if (found) return found;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`it takes too long: ${frame.contentDocument.body.innerText}`);
  };
  // A stroke through points, each a part of the canvas's width and height.
  const stroke = (canvas, points) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const send = (type, [x, y]) => {
      const place = { clientX: left + x * width, clientY: top + y * height, bubbles: true };
      canvas.dispatchEvent(new frame.contentWindow.PointerEvent(type, place));
    };
    send("pointerdown", points[0]);
    points.forEach((point) => send("pointermove", point));
    send("pointerup", points[0]);
  };
  try { BODY } finally { frame.remove(); }
};
"""

STROKES: Final = {
    0: "50,10 30,20 22,50 30,80 50,90 70,80 78,50 70,20 50,10",
    2: "28,25 45,10 68,20 65,42 30,88 75,88",
    3: "30,15 60,10 70,30 45,47 70,60 65,85 30,88",
    4: "55,10 25,60 80,60 / 60,35 60,95",
    6: "60,10 35,40 28,70 45,90 68,80 66,60 45,55 30,70",
    9: "68,30 50,45 32,30 50,10 68,28 62,60 55,90",
}
"""How some people write digits."""


@pytest.fixture(scope="module")
def made(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert package.is_dir()
    out = tmp_path_factory.mktemp("pages")
    subprocess.run([ROOT / "tools" / "example-pages", out], check=True)
    return out


@pytest.fixture(scope="module", params=["firefox", "chromium"])
def page(made: Path, request: pytest.FixtureRequest) -> Iterator[Browser]:
    with browser(request.param, made) as started:
        yield started


def run(page: Browser, name: str, body: str, **given: Any) -> Any:
    return page.run(OPEN.replace("BODY", body), {"page": name, **given})


def probabilities(ink: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the network makes of a picture, in float64."""
    x = ink.reshape(8, 4, 8, 4).mean((1, 3)).reshape(64)
    of = {name: each.astype(np.float64) for name, each in load_file(WEIGHTS).items()}
    z = of["hidden.weight"] @ x + of["hidden.bias"]
    hidden = np.array([0.5 * each * (1 + erf(each / 2**0.5)) for each in z])
    score = of["output.weight"] @ hidden + of["output.bias"]
    power = np.exp(score - score.max())
    shares: NDArray[np.float64] = power / power.sum()
    return shares


def test_drawn_digits_are_recognised(page: Browser) -> None:
    drawn = {
        digit: [
            [[int(part) / 100 for part in point.split(",")] for point in line.split()]
            for line in text.split("/")
        ]
        for digit, text in STROKES.items()
    }
    found = run(
        page,
        "digits",
        """
        await until(() => $("status").textContent === "Ready.");
        const found = {};
        for (const digit in given.drawn) {
          $("clear").click();
          given.drawn[digit].forEach((line) => stroke($("drawing"), line));
          await until(() => $("guess").textContent === digit);
          found[digit] = $("bars").innerText;
        }
        return found;
        """,
        drawn=drawn,
    )
    assert {*found} == {*map(str, STROKES)}


def test_the_network_is_that_of_python(page: Browser) -> None:
    ink = np.random.default_rng(5).integers(0, 2, (32, 32)).astype(float)
    found: Any = page.run(
        """
        import { recognise, shrink } from "http://HOST/generated/digits/kernels/digits.js";
        import { readSafetensors } from "http://HOST/generated/digits/safetensors.js";
        export default async (ctx, ink) => {
          const url = new URL("http://HOST/generated/digits/digits.safetensors");
          const weights = await readSafetensors(url, ctx);
          const x = shrink(ctx.tensor(new Float32Array(ink), [32, 32]));
          const layers = ["hidden", "output"].flatMap((name) =>
            [weights[`${name}.weight`], weights[`${name}.bias`]]);
          return [...await recognise(x, ...layers).read()];
        };
        """,
        ink.reshape(-1).tolist(),
    )
    np.testing.assert_allclose(found, probabilities(ink), rtol=1e-4, atol=1e-6)


def test_the_brush_paints_and_the_reaction_goes_on(page: Browser) -> None:
    found = run(
        page,
        "reaction",
        """
        const canvas = $("picture");
        const red = () => {
          const { data } = canvas.getContext("2d").getImageData(96, 96, 192, 192);
          let sum = 0;
          for (let i = 0; i < data.length; i += 4) sum += data[i];
          return sum / (data.length / 4);
        };
        await until(() => / frames a second/.test($("rate").textContent));
        const before = red();
        const across = Array.from({ length: 40 }, (_, i) => [0.3 + 0.01 * i, 0.5]);
        stroke(canvas, across);
        await until(() => red() > before + 5);
        const one = red();
        await until(() => Math.abs(red() - one) > 0.5);
        return $("rate").textContent;
        """,
    )
    assert found.endswith(("one step.", " steps."))


def test_a_step_is_that_of_the_model(page: Browser) -> None:
    rng = np.random.default_rng(7)
    cells = rng.random((12, 20, 2), dtype=np.float32)
    feed, kill = 0.037, 0.06
    x, y = (cells[..., part].astype(np.float64) for part in (0, 1))

    def spread(part: NDArray[np.float64]) -> NDArray[np.float64]:
        beside = [((1, 0), 0.2), ((-1, 0), 0.2), ((0, 1), 0.2), ((0, -1), 0.2)]
        corners = [((a, b), 0.05) for a in (-1, 1) for b in (-1, 1)]
        moved = (w * np.roll(part, by, (0, 1)) for by, w in beside + corners)
        result: NDArray[np.float64] = sum(moved, -part)
        return result

    wanted = np.stack(
        [
            x + spread(x) - x * y * y + feed * (1 - x),
            y + 0.5 * spread(y) + x * y * y - (feed + kill) * y,
        ],
        -1,
    )
    found: Any = page.run(
        """
        import { react } from "http://HOST/generated/reaction/kernels/reaction.js";
        export default async (ctx, given) => [...await react(
          ctx.tensor(new Float32Array(given), [12, 20], "vec2f"),
          { feed: 0.037, kill: 0.06 }).read()];
        """,
        json.loads(json.dumps(cells.reshape(-1).tolist())),
    )
    result: Any = np.reshape(found, wanted.shape)
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
