"""Node, which runs modules of tests: for what needs no device."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.web.browser import ROOT


def run(folder: Path, source: str, given: object) -> Any:
    """Run a module in a folder; it exports a function of what is given, as JSON.

    What it imports from "kerngen" is the npm package, and `@` in its text is the folder of
    the package's own modules.
    """
    modules = folder / "node_modules"
    modules.mkdir(exist_ok=True)
    link = modules / "kerngen"
    if not link.exists():
        link.symlink_to(ROOT / "web", target_is_directory=True)
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    dist = (ROOT / "web" / "dist").as_uri()
    (folder / "job.js").write_text(source.replace('"@/', f'"{dist}/'), "utf-8")
    (folder / "given.json").write_text(json.dumps(given), "utf-8")
    main = (
        'import job from "./job.js"; import fs from "node:fs";'
        'const given = JSON.parse(fs.readFileSync("given.json", "utf-8"));'
        'fs.writeFileSync("result.json", JSON.stringify(await job(given)) ?? "null");'
    )
    (folder / "main.js").write_text(main, "utf-8")
    done = subprocess.run(
        ["node", "main.js"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads((folder / "result.json").read_text("utf-8"))
