"""The character transformer learns, survives being killed, and refuses what it can't use."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

from examples.characters import data
from examples.characters.__main__ import main
from examples.characters.model import Sizes, scores
from examples.characters.options import VOCABULARY
from examples.characters.sampling import Request, sample
from examples.characters.training import LAST_RATE, Settings, Training
from kerngen.runtime import Context, f32
from kerngen.train.checkpoint import read_checkpoint

ROOT = Path(__file__).parents[2]
STEPS = 20
SMALL = (
    f"--layers 1 --heads 2 --width 32 --context 16 --batch 8 --steps {STEPS} --warmup 5 "
    "--learning-rate 1e-2 --characters 30000 --validate-every 10 --save-every 7 "
    "--samples 2 --length 20"
).split()
SIZES = Sizes(vocabulary=VOCABULARY, context=16, width=32, heads=2, layers=1)


@dataclass(frozen=True)
class Whole:
    """A run from its first to its last step."""

    checkpoint: Path
    plot: Path
    output: str


@pytest.fixture(
    scope="module",
    autouse=True,
    params=["reference", pytest.param("software", marks=pytest.mark.nightly)],
)
def adapter(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run on NumPy's twins; nightly, on the software adapter, too.

    Shaders of a training step compile for seconds there, in each run anew, and each is
    compared with its twin elsewhere.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNGEN_ADAPTER", request.param)
        yield request.param


@pytest.fixture(scope="module")
def whole(adapter: str, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp(adapter)
    checkpoint, plot = folder / "run.safetensors", folder / "run.png"
    printed = StringIO()
    with redirect_stdout(printed):
        files = ["--checkpoint", str(checkpoint), "--plot", str(plot)]
        assert main([*SMALL, *files]) == 0
    return Whole(checkpoint, plot, printed.getvalue())


def command(*arguments: str | Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "examples.characters",
        *SMALL,
        *(str(a) for a in arguments),
    ]


def copied(whole: Whole, folder: Path) -> Path:
    """Copy a checkpoint and its record."""
    for suffix in ("", ".json"):
        shutil.copy(f"{whole.checkpoint}{suffix}", folder)
    return folder / whole.checkpoint.name


def assert_same_bits(
    one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]
) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def test_it_learns(whole: Whole) -> None:
    losses = re.findall(r"step +(\d+) of 20: validation loss (\d\.\d+)", whole.output)
    steps, values = zip(*losses, strict=True)
    assert steps == ("0", "10", "20")
    assert abs(float(values[0]) - math.log(VOCABULARY)) < 0.1
    # Each build of Python has a text of its own: Debian's is harder than python.org's.
    assert float(values[-1]) < math.log(VOCABULARY) - 0.7
    assert "--- sample 2\nReturn the " in whole.output
    assert f"Result: validation loss {values[-1]} nats" in whole.output


def test_steps_wait_for_nothing(whole: Whole) -> None:
    found = re.search(r"(\d+) readbacks, (\d+) of them within steps", whole.output)
    assert found is not None
    # A read per ten steps and per validation, a few per saved state, one per character.
    assert int(found[1]) <= 2 + 3 + 4 * 60
    assert int(found[2]) == 0


def test_the_losses_are_drawn(whole: Whole) -> None:
    picture = imread(whole.plot)
    assert picture.shape[:2] == (675, 1200)
    assert picture.std() > 0.05


@pytest.mark.nightly
def test_a_killed_run_goes_on_bit_for_bit(
    whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "run.safetensors"
    with subprocess.Popen(
        command("--checkpoint", checkpoint), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("step   10"):
                process.kill()
    assert process.returncode != 0
    assert 7 <= int(read_checkpoint(checkpoint)["step"]) < STEPS
    assert main([*SMALL, "--checkpoint", str(checkpoint), "--resume"]) == 0
    assert "Going on after step" in capsys.readouterr().out
    assert_same_bits(read_checkpoint(checkpoint), read_checkpoint(whole.checkpoint))
    records = [Path(f"{c}.json").read_text() for c in (checkpoint, whole.checkpoint)]
    assert records[0] == records[1]


def test_a_resumed_run_that_is_done_only_writes_samples(
    whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = copied(whole, tmp_path)
    before = checkpoint.read_bytes()
    assert main([*SMALL, "--checkpoint", str(checkpoint), "--resume"]) == 0
    samples = capsys.readouterr().out.partition("--- sample 1")[2]
    assert samples == whole.output.partition("--- sample 1")[2]
    assert checkpoint.read_bytes() == before


def test_a_longer_run_leaves_out_losses_after_the_checkpoint(
    whole: Whole, tmp_path: Path
) -> None:
    # So it is after a kill between the two writes.
    checkpoint = copied(whole, tmp_path)
    record = Path(f"{checkpoint}.json")
    ahead = json.loads(record.read_text())
    ahead["losses"]["validation"].append([22, 9.0])
    record.write_text(json.dumps(ahead))
    assert (
        main([*SMALL, "--checkpoint", str(checkpoint), "--resume", "--steps", "21"])
        == 0
    )
    losses = json.loads(record.read_text())["losses"]
    assert [step for step, _ in losses["validation"]] == [0, 10, 20, 21]


def test_ctrl_c_saves_and_says_how_to_go_on(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_step = Training.take_step

    def interrupted(training: Training) -> None:
        if training.trainer.step_count == 2:
            os.kill(os.getpid(), signal.SIGINT)
        take_step(training)

    monkeypatch.setattr(Training, "take_step", interrupted)
    checkpoint, plot = tmp_path / "run.safetensors", tmp_path / "run.png"
    files = ["--plot", str(plot), "--checkpoint", str(checkpoint)]
    assert main([*SMALL, *files]) == 130
    output = capsys.readouterr().out
    assert "Stopped after step 3, saved. Go on with:\npython -m examples" in output
    assert output.endswith(f"--checkpoint {checkpoint} --resume\n")
    assert read_checkpoint(checkpoint)["step"] == 3
    assert plot.exists()


def test_a_damaged_checkpoint_is_refused(
    whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = copied(whole, tmp_path)
    content = bytearray(checkpoint.read_bytes())
    content[-1000] ^= 1
    checkpoint.write_bytes(content)
    assert main([*SMALL, "--checkpoint", str(checkpoint), "--resume"]) == 1
    assert f"Error: {checkpoint} is damaged" in capsys.readouterr().err


def test_a_damaged_record_is_refused(
    whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = copied(whole, tmp_path)
    record = Path(f"{checkpoint}.json")
    record.write_text(record.read_text()[:-20])
    assert main([*SMALL, "--checkpoint", str(checkpoint), "--resume"]) == 1
    assert f"Error: {record} is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--width", "48"], "has shape (96, 32), expected (96, 48)"),
        (["--heads", "4"], "of another run: heads was 2, is 4."),
        (["--seed", "7"], "of another run: seed was 0, is 7."),
        (["--characters", "40000"], "of another run: text was "),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    options: list[str], message: str, whole: Whole, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*SMALL, "--checkpoint", str(whole.checkpoint), "--resume", *options]
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_a_missing_checkpoint_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "none.safetensors"
    assert main([*SMALL, "--checkpoint", str(checkpoint), "--resume"]) == 1
    assert f"There is no {checkpoint} to go on from" in capsys.readouterr().err


def test_a_checkpoint_is_not_overwritten_by_another_run(
    whole: Whole, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--checkpoint", str(whole.checkpoint)]) == 1
    assert "go on from it with --resume" in capsys.readouterr().err


def test_gradients_that_are_not_finite_end_in_a_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*SMALL, "--learning-rate", "1e30"]) == 1
    error = capsys.readouterr().err
    assert "the gradients are not finite" in error
    assert "A lower --learning-rate" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--heads", "3"], "--width 32 is no multiple of --heads 3"),
        (["--resume"], "--resume needs --checkpoint FILE"),
        (["--plot", "nowhere/run.png"], "there is no folder nowhere"),
        (["--steps", "0"], "0 is not 1 or more"),
        (["--temperature", "nan"], "nan is negative or not finite"),
        (["--prompt", ""], "an empty prompt"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*SMALL, *options])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_too_little_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--characters", "10"]) == 1
    assert "--characters 10 is too little text" in capsys.readouterr().err


def test_no_character_sees_those_after_it(ctx: Context) -> None:
    rng = np.random.default_rng(0)
    p = {name: ctx.tensor(a, f32) for name, a in SIZES.initial(0).items()}
    ids = rng.integers(0, VOCABULARY, (2, 16)).astype(np.uint32)
    others = ids.copy()
    others[:, 9:] = (others[:, 9:] + 1) % VOCABULARY
    one, other = scores(p, SIZES, ids).numpy(), scores(p, SIZES, others).numpy()
    np.testing.assert_array_equal(one[:, :9], other[:, :9])
    assert np.abs(one[:, 9:] - other[:, 9:]).min(axis=-1).max() > 0
    beginning = scores(p, SIZES, ids[:, :9]).numpy()
    np.testing.assert_allclose(beginning, one[:, :9], rtol=1e-4, atol=1e-5)


def test_the_rate_rises_and_falls() -> None:
    settings = Settings(SIZES, batch=8, steps=100, warmup=10, learning_rate=2, seed=0)
    rates = [settings.rate(step) for step in range(1, 101)]
    assert rates[9] == max(rates) == 2
    assert rates[:10] == sorted(rates[:10])
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert rates[54] == pytest.approx((2 + 2 * LAST_RATE) / 2)
    assert rates[-1] == pytest.approx(2 * LAST_RATE)


def test_batches_depend_on_seed_and_step_alone() -> None:
    ids = np.arange(1000, dtype=np.uint32)
    one, same, other = (
        data.training_batch(ids, 4, 16, 3, step).given for step in (5, 5, 6)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    batch = data.training_batch(ids, 64, 16, 3, 5)
    np.testing.assert_array_equal(batch.following, batch.given + 1)


def test_the_text_is_docstrings_of_the_standard_library() -> None:
    text = data.load_text(40_000, VOCABULARY)
    assert text.digest == data.load_text(40_000, VOCABULARY).digest
    assert text.vocabulary.size <= VOCABULARY
    first = inspect.getdoc(importlib.import_module("__future__"))
    assert first is not None
    assert text.vocabulary.decode(text.train).startswith(first)
    assert len(text.train) + len(text.validation) >= 39_000
    assert 5 < len(text.train) / len(text.validation) < 18


def test_characters_without_a_number_share_one() -> None:
    vocabulary = data.Vocabulary.of("abbccc", 3)
    assert vocabulary == data.Vocabulary("cb")
    assert vocabulary.encode("abcd").tolist() == [2, 1, 0, 2]
    assert vocabulary.decode(vocabulary.encode("abcd")) == "\ufffdbc\ufffd"


def test_only_characters_are_written(ctx: Context) -> None:
    p = {name: ctx.tensor(a, f32) for name, a in SIZES.initial(0).items()}
    request = Request("ab", length=20, count=2, temperature=9.0, seed=0)
    texts = sample(p, SIZES, data.Vocabulary("abc"), request)
    assert {len(text) for text in texts} == {22}
    assert set("".join(texts)) == set("abc")
    assert texts == sample(p, SIZES, data.Vocabulary("abc"), request)
