"""The command: load a model, stream what it says, and how fast."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import kerngen.runtime as gpu
from examples.qwen3.errors import ModelError
from examples.qwen3.files import Storage
from examples.qwen3.generation import Piece, stream_generate
from examples.qwen3.loading import load
from examples.qwen3.model import Model
from examples.qwen3.quantized import Quantized
from examples.qwen3.sampling import make_sampler
from examples.qwen3.text import Tokenizer
from kerngen.runtime import f16, f32

INTERRUPTED = 130
STORAGE: dict[str, Storage] = {"f16": f16, "f32": f32}


def main(arguments: Sequence[str]) -> int:
    """Return 0, 1 after an error, 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except (gpu.Error, ModelError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.qwen3",
        description="Generate text by a Qwen3 or Llama model in Hugging Face's layout.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        help="has config.json and model.safetensors, or is a .gguf file",
    )
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", help="the text to go on from")
    prompt.add_argument("--ids", help="the same as ids: 1,2,3")
    parser.add_argument("--chat", action="store_true", help="ask it, by its template")
    parser.add_argument("--max-tokens", type=int, default=100)
    parser.add_argument(
        "--temperature", type=float, default=0.0, help="0: the likeliest"
    )
    parser.add_argument("--top-k", type=int, default=0, help="draw among so many")
    parser.add_argument(
        "--top-p", type=float, default=1.0, help="draw among this share"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--storage", choices=STORAGE, help="of weights; f16 if it can")
    parser.add_argument(
        "--bits", type=int, choices=(4, 8), help="quantize the matrices"
    )
    return parser


def _run(options: argparse.Namespace) -> None:
    sampler = make_sampler(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )
    with gpu.open() as ctx:
        storage = STORAGE[options.storage] if options.storage else None
        model, tokenizer = load(
            options.folder,
            ctx=ctx,
            storage=storage,
            bits=options.bits,
            progress=_progress,
        )
        _introduce(model)
        prompt = _prompt(options, tokenizer)
        piece = None
        for piece in stream_generate(
            model, tokenizer, prompt, max_tokens=options.max_tokens, sampler=sampler
        ):
            _print(piece, tokenizer)
        if piece:
            _report(model, piece)


def _prompt(
    options: argparse.Namespace, tokenizer: Tokenizer | None
) -> str | Sequence[int]:
    if options.ids is not None:
        try:
            return [int(each) for each in options.ids.split(",")]
        except ValueError as error:
            raise ModelError(
                f"--ids are numbers, 1,2,3; not {options.ids!r}."
            ) from error
    if not options.chat:
        return str(options.prompt)
    if tokenizer is None:
        raise ModelError("The folder has no tokenizer.json, which --chat needs.")
    return tokenizer.chat(options.prompt)


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == of else ""
        print(f"\rLoading: layer {done} of {of}", end=end, file=sys.stderr, flush=True)


def _introduce(model: Model) -> None:
    config, ctx = model.config, model.ctx
    first = model.weights.head.parts[0]
    of = first.codes if isinstance(first, Quantized) else first
    storage = of.element.__name__
    parts = len(model.weights.embedding.parts)
    print(
        f"{config.family}, {config.layers} layers of {config.width}, weights in {storage}; "
        f"{ctx.adapter_name} ({ctx.kind})",
        file=sys.stderr,
    )
    if parts > 1:
        print(
            f"The embedding is in {parts} parts: the adapter binds "
            f"{ctx.max_tensor_bytes >> 20} MiB.",
            file=sys.stderr,
        )


def _print(piece: Piece, tokenizer: Tokenizer | None) -> None:
    print(piece.text if tokenizer else f"{piece.token} ", end="", flush=True)


def _report(model: Model, piece: Piece) -> None:
    print()
    print(
        f"{piece.tokens} tokens, {piece.rate:.1f} a second; prompt of "
        f"{piece.prompt_tokens}, {piece.prompt_rate:.1f} a second, first token after "
        f"{piece.first_seconds:.2f} s; {model.weights.nbytes >> 20} MiB of weights",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
