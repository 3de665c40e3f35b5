"""What `mkdocs` calls while it builds the site: pages made of data, and a check."""

from __future__ import annotations

import re
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

_ERRORS: Final = "\nThe same pages are here: [all errors](errors/index.md).\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the index of errors, and a page for each."""
    for path, text in documents().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Drop what is said to tests alone, colour programs, link what only the site has."""
    text = _PROGRAM.sub("```kern", _NOTE.sub("", markdown))
    return text + _ERRORS if page.file.src_uri == "explain.md" else text


def on_post_page(output: str, **_: object) -> str:
    """Refuse a page that a browser would fetch something for: it can be read offline."""
    if fetched := _FETCHED.search(output):
        raise PluginError(f"A page fetches {fetched[1]}.")
    return output
