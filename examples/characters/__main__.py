"""The command: train or go on, draw the losses, print samples."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import kerngen.runtime as gpu
from examples.characters.data import load_text
from examples.characters.distributed import DistributedError, Ranks, joined
from examples.characters.options import Options, parse_options
from examples.characters.picture import save_picture
from examples.characters.progress import in_bits
from examples.characters.record import RecordError
from examples.characters.run import Run
from examples.characters.sampling import sample
from examples.characters.training import Training
from kerngen.train import NonFiniteError

COMMAND = ("python", "-m", "examples.characters")
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Return 0 if all steps are taken, 130 after Ctrl-C, 1 after an error."""
    options = parse_options(arguments)
    try:
        if options.distributed:
            with joined() as ranks, _quiet(ranks.rank > 0):
                return _train(options, arguments, ranks)
        return _train(options, arguments)
    except NonFiniteError as error:
        return _fail(f"{error}\nA lower --learning-rate or a longer --warmup may help.")
    except (gpu.Error, DistributedError, RecordError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("Stopped. Nothing was saved since the last checkpoint.", file=sys.stderr)
        return INTERRUPTED


def _fail(text: str) -> int:
    print(f"Error: {text}", file=sys.stderr)
    return 1


@contextmanager
def _quiet(is_quiet: bool) -> Generator[None, None, None]:
    """Let one process of several speak."""
    if not is_quiet:
        yield
        return
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nothing,
        redirect_stdout(nothing),
    ):
        yield


def _train(
    options: Options, arguments: Sequence[str], ranks: Ranks | None = None
) -> int:
    checkpoint = options.checkpoint
    exists = checkpoint is not None and checkpoint.exists()
    if checkpoint is not None and exists != options.resume and ranks is None:
        return _fail(
            f"There is no {checkpoint} to go on from: begin without --resume."
            if options.resume
            else f"{checkpoint} exists: go on from it with --resume, or name another."
        )
    text = load_text(options.characters, options.settings.sizes.vocabulary)
    shortest = min(len(text.train), len(text.validation))
    if shortest <= options.settings.sizes.context:
        return _fail(
            f"--characters {options.characters} is too little text for --context "
            f"{options.settings.sizes.context}: a part of it has {shortest} characters."
        )
    batch, size = options.settings.batch, ranks.group.size if ranks else 1
    if batch % size:
        return _fail(f"--batch {batch} is no multiple of the {size} processes.")
    with ranks.open_context() if ranks else gpu.open() as ctx:
        run = Run(Training(ctx, text, options.settings, ranks), options)
        _introduce(run)
        start = time.perf_counter()
        run.finish()
        _report(run, time.perf_counter() - start)
        if run.is_done:
            _print_samples(run)
            return 0
    return _say_how_to_go_on(run, arguments)


def _introduce(run: Run) -> None:
    training = run.training
    parameters = sum(tensor.size for tensor in training.trainer.tensors.values())
    characters = len(training.text.train), len(training.text.validation)
    print(f"Adapter: {training.ctx.adapter_name} ({training.ctx.kind})")
    if training.ranks is not None:
        print(f"{training.ranks.group.size} processes")
    print(
        f"{parameters:,} parameters; {characters[0]:,} characters to train with, "
        f"{characters[1]:,} to validate with"
    )
    if run.step:
        print(f"Going on after step {run.step}")
    sys.stdout.flush()


def _report(run: Run, seconds: float) -> None:
    """Say what it took, and draw how the losses fell."""
    done = run.training.ctx.counters
    plot = run.options.plot if run.is_first else None
    print(
        f"{done.calls} kernel calls, {done.dispatches} dispatches, {done.readbacks} "
        f"readbacks, {run.training.readbacks} of them within steps; {seconds:.1f} s"
    )
    if plot is not None:
        save_picture(plot, run.curve)
        print(f"Losses drawn: {plot}")


def _print_samples(run: Run) -> None:
    training = run.training
    texts = sample(
        training.trainer.tensors,
        training.settings.sizes,
        training.text.vocabulary,
        run.options.request,
    )
    for number, text in enumerate(texts, 1):
        print(f"--- sample {number}\n{text}")
    _, loss = run.curve.validation[-1]
    print(f"---\nResult: validation loss {in_bits(loss)} after {run.step} steps")


def _say_how_to_go_on(run: Run, arguments: Sequence[str]) -> int:
    if run.options.checkpoint is None:
        print(f"Stopped after step {run.step}. Nothing was saved: no --checkpoint.")
        return INTERRUPTED
    again = [each for each in arguments if each != "--resume"]
    print(
        f"Stopped after step {run.step}, saved. Go on with:\n"
        f"{shlex.join([*COMMAND, *again, '--resume'])}"
    )
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
