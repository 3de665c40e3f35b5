"""What `mkdocs` calls while it builds the site: pages made of data, and a check."""

from __future__ import annotations

import os
import re
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from kerngen.explain.site import documents

_FETCHED: Final = re.compile(
    r'<(?:script|link(?![^>]+rel="?canonical)|img|iframe)[^>]+(?:src|href)="(https?:[^"]+)'
)
"""What a browser fetches; a page's canonical address, of a site that is served, is not."""

_NOTE: Final = re.compile(r"^<!-- docs: .* -->\n", re.MULTILINE)

_PROGRAM: Final = re.compile(r"^```rust\b", re.MULTILINE)
"""A program, for readers elsewhere in the colours of Rust."""

_FENCE: Final = re.compile(r"^```rust\b[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_PLAYGROUND: Final = os.environ.get("KERNGEN_PLAYGROUND")
"""The folder that `tools/playground` made, which becomes part of the site, or none."""

_ERRORS: Final = "\nThe same pages are here: [all errors](errors/index.md).\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the index of errors, and a page for each."""
    for path, text in documents().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Drop what is said to tests alone, colour programs, link what only the site has."""
    text = _NOTE.sub("", markdown)
    if _PLAYGROUND:
        text = with_links(text, "../" * page.url.count("/"))
    text = _PROGRAM.sub("```kern", text)
    return text + _ERRORS if page.file.src_uri == "explain.md" else text


def with_links(text: str, root: str) -> str:
    """Put below each program a link that opens it in the playground.

    One that uses other files can't run there: the playground has one text.
    """

    def linked(block: re.Match[str]) -> str:
        program = block[1]
        if re.search(r"^use ", program, re.MULTILINE):
            return block[0]
        address = f"{root}playground/index.html#{b64encode(program.encode()).decode()}"
        return f'{block[0]}\n\n<p class="run"><a href="{address}">Run</a></p>\n'

    return _FENCE.sub(linked, text)


def on_post_build(config: MkDocsConfig) -> None:
    """Add the playground to the site, if there is one."""
    if _PLAYGROUND:
        shutil.copytree(_PLAYGROUND, Path(config.site_dir) / "playground")


def on_post_page(output: str, **_: object) -> str:
    """Refuse a page that a browser would fetch something for: it can be read offline."""
    if fetched := _FETCHED.search(output):
        raise PluginError(f"A page fetches {fetched[1]}.")
    return output
