"""The extension for VS Code: its grammar, and the file that is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from kerngen.syntax.highlight import RULES, KernLexer
from kerngen.syntax.textmate import SCOPES
from tests.project.tree import ROOT

FOLDER = ROOT / "editors" / "vscode"
SOURCES = sorted((ROOT / "dsl").glob("*.kern"))


def test_the_grammar_is_made_of_the_rules() -> None:
    done = subprocess.run(
        [sys.executable, "tools/pack_vscode.py", "--check"], cwd=ROOT, check=False
    )
    assert done.returncode == 0


def test_every_kind_has_a_scope() -> None:
    kinds = {
        kind for rules in RULES.values() for _, kinds, _ in rules for kind in kinds
    }
    assert kinds - {"Text.Whitespace"} == SCOPES.keys()


def test_what_the_package_names_is_there() -> None:
    package: Any = json.loads((FOLDER / "package.json").read_text("utf-8"))
    listed = package["contributes"]
    (language,), (grammar,) = listed["languages"], listed["grammars"]
    assert (FOLDER / language["configuration"]).is_file()
    assert (FOLDER / grammar["path"]).is_file()
    assert f"onLanguage:{language['id']}" in package["activationEvents"]


def by_pygments(text: str) -> list[str]:
    """The scope of each character by Pygments."""
    scopes = [""] * len(text)
    lexer: Any = KernLexer()
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        scope = SCOPES.get(str(kind).removeprefix("Token."), "")
        scopes[start : start + len(value)] = [scope] * len(value)
    return scopes


@pytest.fixture(scope="module", name="extension")
def packed_extension() -> Path:
    """Pack the extension without a network, but for the client, which comes from npm once."""
    if not (FOLDER / "node_modules").is_dir():
        install = ["npm", "--prefix", str(FOLDER), "ci", "--no-audit", "--no-fund"]
        subprocess.run(install, check=True)
    made = FOLDER / "kerngen.vsix"
    made.unlink(missing_ok=True)
    bundle = ["npm", "--prefix", str(FOLDER), "run", "--silent", "bundle"]
    for command in (bundle, [sys.executable, "tools/pack_vscode.py"]):
        subprocess.run(["unshare", "-rn", *command], cwd=ROOT, check=True)
    return made


@pytest.mark.web
def test_the_extension_is_packed_without_a_network(extension: Path) -> None:
    with ZipFile(extension) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        client = archive.read("extension/dist/extension.js").decode()
    assert {"extension.vsixmanifest", "[Content_Types].xml"} < names
    assert "LanguageClient" in client
    packages = set(re.findall(r'require\("(?:node:)?([a-z@][^"]*)"\)', client))
    assert packages <= {*modules_of_node(), "vscode"}


def modules_of_node() -> list[str]:
    """Return the modules that Node brings: all others must be in the bundle."""
    script = "console.log(JSON.stringify(require('module').builtinModules))"
    printed = subprocess.run(
        ["node", "-e", script], check=True, capture_output=True, text=True
    ).stdout
    listed: list[str] = json.loads(printed)
    return listed


@pytest.mark.web
@pytest.mark.usefixtures("extension")
def test_the_grammar_highlights_as_pygments_does() -> None:
    script = Path(__file__).with_name("tokens.mjs")
    printed = subprocess.run(
        ["node", script, FOLDER, *SOURCES], check=True, capture_output=True, text=True
    ).stdout
    for source, line in zip(SOURCES, printed.splitlines(), strict=True):
        text = source.read_text("utf-8")
        wanted, found = by_pygments(text), [""] * len(text)
        for start, end, scope in json.loads(line):
            found[start:end] = [scope.removesuffix(".kern")] * (end - start)
        differ = [
            (source.name, text[max(0, at - 20) : at + 9], one, other)
            for at, (one, other) in enumerate(zip(found, wanted, strict=True))
            if one != other and not text[at].isspace()
        ]
        assert len(differ) <= 0.001 * len(text), differ[:5]
