"""The command: fine-tune or go on, draw the losses, export the tuned model."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kerngen.runtime as gpu
from examples.characters.picture import save_picture
from examples.characters.record import RecordError
from examples.qwen3.errors import ModelError
from examples.qwen3.loading import load
from examples.qwen3.lora.adapters import ATTENTION, TARGETS, Lora
from examples.qwen3.lora.export import check_goal, export
from examples.qwen3.lora.run import Files, Run
from examples.qwen3.lora.training import (
    Settings,
    Tokens,
    Training,
    docstring_tokens,
    text_tokens,
)
from examples.qwen3.text import Tokenizer
from kerngen.runtime import f32
from kerngen.train import NonFiniteError

COMMAND = ("python", "-m", "examples.qwen3.lora")
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Return 0 if all steps are taken, 130 after Ctrl-C, 1 after an error."""
    options = _parser().parse_args(arguments)
    try:
        return _tune(options, arguments)
    except NonFiniteError as error:
        return _fail(f"{error}\nA lower --learning-rate or a longer --warmup may help.")
    except (gpu.Error, ModelError, RecordError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("Stopped. Nothing was saved since the last checkpoint.", file=sys.stderr)
        return INTERRUPTED


def _fail(text: str) -> int:
    print(f"Error: {text}", file=sys.stderr)
    return 1


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def _not_negative(text: str) -> int:
    if (number := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def _amount(text: str) -> float:
    if not 0 < (number := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no finite number above 0")
    return number


TABLE: dict[str, dict[str, tuple[Any, Any, str]]] = {
    "the text": {
        "text": (Path, None, "a file to learn from, instead of the docstrings"),
        "characters": (_count, 300_000, "about how much of the docstrings to use"),
    },
    "the pairs": {
        "rank": (_count, 8, "rows of A"),
        "alpha": (_amount, 16.0, "a pair's product counts alpha / rank"),
    },
    "training": {
        "context": (_count, 128, "tokens of a row"),
        "batch": (_count, 4, "rows per step"),
        "steps": (_count, 200, "steps in all"),
        "learning-rate": (_amount, 2e-4, "the highest"),
        "warmup": (_not_negative, 10, "steps until it is reached"),
        "seed": (_not_negative, 0, "of pairs and batches"),
        "validate-every": (_count, 20, "steps between two looks at the other text"),
    },
    "files": {
        "checkpoint": (Path, None, "where to save the state, to --resume from"),
        "save-every": (_count, 50, "steps between two savings"),
        "plot": (Path, None, "where to draw the losses, as PNG"),
        "export": (Path, None, "a new folder for the tuned model, in f32"),
    },
}
"""Options by group: how each is read, its default, and what it is."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=" ".join(COMMAND),
        description="Fine-tune a Qwen3 or Llama model by LoRA, on Python's docstrings.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "folder", type=Path, help="config.json, tokenizer.json, model.safetensors"
    )
    for title, rows in TABLE.items():
        group = parser.add_argument_group(title)
        for name, (kind, default, text) in rows.items():
            group.add_argument(f"--{name}", type=kind, default=default, help=text)
    parser.add_argument(
        "--targets",
        nargs="+",
        choices=TARGETS,
        default=list(ATTENTION),
        help="the matrices to adapt",
    )
    parser.add_argument("--resume", action="store_true", help="go on from --checkpoint")
    return parser


def _tune(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    _check_files(options)
    with gpu.open() as ctx:
        model, tokenizer = load(options.folder, ctx=ctx, storage=f32)
        tokens = _tokens(options, tokenizer)
        training = Training(model, tokens, _settings(options))
        files = Files(
            checkpoint=options.checkpoint,
            resume=options.resume,
            save_every=options.save_every,
            validate_every=options.validate_every,
        )
        run = Run(training, files)
        _introduce(training)
        run.finish()
        if options.plot:
            title = f"LoRA of {options.folder.resolve().name}, rank {options.rank}"
            save_picture(options.plot, run.curve, title=title, unit="token")
            print(f"Losses drawn: {options.plot}")
        if not run.is_done:
            return _print_how_to_go_on(options, training.step, arguments)
        if options.export:
            pairs = {name: t.numpy() for name, t in training.trainer.tensors.items()}
            export(options.folder, options.export, training.settings.lora, pairs)
            print(f"Tuned model: {options.export}")
    return 0


def _check_files(options: argparse.Namespace) -> None:
    """Refuse files that can't be used, before the work begins."""
    checkpoint: Path | None = options.checkpoint
    if options.resume and checkpoint is None:
        raise ModelError("--resume needs --checkpoint FILE: what to go on from.")
    if checkpoint is not None and checkpoint.exists() != options.resume:
        raise ModelError(
            f"There is no {checkpoint} to go on from: begin without --resume."
            if options.resume
            else f"{checkpoint} exists: go on from it with --resume, or name another."
        )
    for name in ("checkpoint", "plot"):
        file: Path | None = getattr(options, name)
        if file is not None and not file.parent.is_dir():
            raise ModelError(f"--{name} {file}: there is no folder {file.parent}.")
    if options.export is not None:
        check_goal(options.export)


def _tokens(options: argparse.Namespace, tokenizer: Tokenizer | None) -> Tokens:
    if tokenizer is None:
        raise ModelError(f"{options.folder} has no tokenizer.json, which text needs.")
    if options.text is None:
        return docstring_tokens(tokenizer, options.characters)
    try:
        text = options.text.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{options.text} is no text in UTF-8: {error}.") from error
    return text_tokens(tokenizer, text)


def _settings(options: argparse.Namespace) -> Settings:
    targets = tuple(each for each in TARGETS if each in options.targets)
    return Settings(
        lora=Lora(rank=options.rank, alpha=options.alpha, targets=targets),
        model=_digest(options.folder),
        context=options.context,
        batch=options.batch,
        steps=options.steps,
        warmup=options.warmup,
        learning_rate=options.learning_rate,
        seed=options.seed,
    )


def _digest(folder: Path) -> str:
    """Return a hash of the model's weights: a checkpoint means nothing to others."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _introduce(training: Training) -> None:
    ctx, pairs = training.ctx, training.trainer.tensors
    count = sum(tensor.size for tensor in pairs.values())
    tokens = len(training.tokens.train), len(training.tokens.validation)
    print(f"Adapter: {ctx.adapter_name} ({ctx.kind})")
    print(
        f"{count:,} parameters in {len(pairs) // 2} pairs; {tokens[0]:,} tokens to train "
        f"with, {tokens[1]:,} to validate with"
    )
    if training.step:
        print(f"Going on after step {training.step}")
    sys.stdout.flush()


def _print_how_to_go_on(
    options: argparse.Namespace, step: int, arguments: Sequence[str]
) -> int:
    if options.checkpoint is None:
        print(f"Stopped after step {step}. Nothing was saved: no --checkpoint.")
        return INTERRUPTED
    again = [each for each in arguments if each != "--resume"]
    print(
        f"Stopped after step {step}, saved. Go on with:\n"
        f"{shlex.join([*COMMAND, *again, '--resume'])}"
    )
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
