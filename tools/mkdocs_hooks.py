"""What `mkdocs` calls while it builds the site: pages that are made of data are added."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from kerngen.explain.site import documents


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the index of errors, and a page for each."""
    for path, text in documents().items():
        files.append(File.generated(config, path, content=text))
    return files
