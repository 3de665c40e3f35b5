"""The command: search Markdown pages by meaning."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import kerngen.runtime as gpu
from examples.encoder.loading import load
from examples.encoder.search import passages, search
from examples.qwen3.errors import ModelError

DOCS = Path(__file__).parents[2] / "docs"


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 after an error."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except (gpu.Error, ModelError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.encoder",
        description="Search Markdown pages by meaning, with a sentence encoder in "
        "Hugging Face's layout. Its weights are not part of kerngen: download "
        "sentence-transformers/all-MiniLM-L6-v2, or another one of its kind.",
    )
    parser.add_argument(
        "folder", type=Path, help="has config.json, model.safetensors, tokenizer.json"
    )
    parser.add_argument("question")
    parser.add_argument(
        "--pages", type=Path, default=DOCS, help="a folder; kerngen's own docs"
    )
    parser.add_argument("--top", type=int, default=5, help="how many passages")
    return parser


def _run(options: argparse.Namespace) -> None:
    among = [*passages(sorted(options.pages.glob("**/*.md")))]
    if not among:
        raise ModelError(f"{options.pages} has no pages that end in .md.")
    with gpu.open() as ctx:
        encoder = load(options.folder, ctx=ctx)
        start = time.perf_counter()
        hits = search(encoder, options.question, among, options.top)
        seconds = time.perf_counter() - start
    for hit in hits:
        print(f"{hit.score:.3f}  {hit.where}\n       {hit.text[:200]}")
    print(f"{len(among)} passages in {seconds:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
