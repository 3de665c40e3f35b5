"""States and checkpoints: going on bit for bit, and refusing what is no state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import numpy as safetensors

import kerngen.runtime as gpu
from kerngen.train import CheckpointError, Trainer
from tests.budget import examples

from .networks import initial, take_step
from .optimizers import Case, each_optimizer

State = dict[str, NDArray[Any]]


def assert_same(one: State, other: State) -> None:
    assert list(one) == list(other)
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def trained(ctx: gpu.Context, steps: int) -> Trainer:
    trainer = Trainer(ctx, initial())
    for _ in range(steps):
        take_step(trainer)
    return trainer


@pytest.fixture(scope="module")
def checkpoint(ctx: gpu.Context, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after three steps."""
    path = tmp_path_factory.mktemp("train") / "three.safetensors"
    trained(ctx, 3).save(path)
    return path


def test_a_state_names_all_there_is(ctx: gpu.Context) -> None:
    state = trained(ctx, 2).state()
    assert state["step"] == 2
    assert {name.split(".")[0] for name in state} == {"step", "parameters", "m", "v"}
    assert state["m.hidden.weight"].shape == initial()["hidden.weight"].shape


def test_going_on_is_the_same_bit_for_bit(ctx: gpu.Context, checkpoint: Path) -> None:
    other = Trainer(ctx, initial(7))
    other.load(checkpoint)
    assert other.step_count == 3
    for _ in range(4):
        take_step(other)
    assert_same(other.state(), trained(ctx, 7).state())


@each_optimizer
def test_each_optimizer_goes_on_bit_for_bit(
    ctx: gpu.Context, case: Case, tmp_path: Path
) -> None:
    whole, first, second = (case.trainer(ctx, initial()) for _ in range(3))
    for _ in range(4):
        take_step(whole, case)
    take_step(first, case)
    take_step(first, case)
    first.save(tmp_path / "two")
    second.load(tmp_path / "two")
    take_step(second, case)
    take_step(second, case)
    assert_same(second.state(), whole.state())


def test_a_checkpoint_of_another_optimizer(ctx: gpu.Context, checkpoint: Path) -> None:
    with pytest.raises(CheckpointError, match=r"'v\.hidden\.bias' is unknown"):
        Trainer(ctx, initial(), optimizer="lion").load(checkpoint)


def test_going_on_on_another_device_is_the_same(
    ctx: gpu.Context, checkpoint: Path
) -> None:
    with gpu.open(adapter="software", limits=gpu.WEBGPU_LIMITS) as fresh:
        other = Trainer(fresh, initial(7))
        other.load(checkpoint)
        take_step(other)
        assert_same(other.state(), trained(ctx, 4).state())


def test_special_numbers_survive(ctx: gpu.Context, tmp_path: Path) -> None:
    bits = np.array([0x80000000, 1, 0x7FC00001, 0xFF800000], np.uint32)
    trainer = Trainer(ctx, {"a": bits.view(np.float32)})
    trainer.save(tmp_path / "a")
    other = Trainer(ctx, {"a": np.zeros(4)})
    other.load(tmp_path / "a")
    np.testing.assert_array_equal(other.tensors["a"].numpy().view(np.uint32), bits)


def test_a_checkpoint_is_a_safetensors_file(checkpoint: Path) -> None:
    arrays = safetensors.load(checkpoint.read_bytes())
    assert arrays["parameters.out.bias"].shape == (4,)


def test_a_write_that_fails_leaves_the_old_file(
    ctx: gpu.Context, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkpoint.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        trained(ctx, 1).save(checkpoint)
    assert checkpoint.read_bytes() == before
    assert list(checkpoint.parent.iterdir()) == [checkpoint]


def test_a_checkpoint_keeps_what_its_path_was(ctx: gpu.Context, tmp_path: Path) -> None:
    trainer, path, link = trained(ctx, 1), tmp_path / "run", tmp_path / "link"
    os.umask(mask := os.umask(0))
    trainer.save(path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    trainer.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    for other in (tmp_path, Path("/dev/null")):
        with pytest.raises(OSError, match=r"not a regular file"):
            trainer.save(other)
    with pytest.raises(IsADirectoryError):
        trainer.load(tmp_path)
    trainer.save(tmp_path / ("n" * 250))


def test_a_foreign_element_type(ctx: gpu.Context, tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    content = len(header).to_bytes(8, "little") + header + b"\0\0"
    (tmp_path / "bf16").write_bytes(content)
    with pytest.raises(CheckpointError, match="bf16"):
        trained(ctx, 0).load(tmp_path / "bf16")


@settings(max_examples=examples(60))
@given(st.data())
def test_damage_is_noticed(
    ctx: gpu.Context, checkpoint: Path, data: st.DataObject
) -> None:
    content = bytearray(checkpoint.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[place:]
    broken = checkpoint.with_name("broken")
    broken.write_bytes(content)
    trainer = Trainer(ctx, initial(3))
    with pytest.raises(CheckpointError, match="broken"):
        trainer.load(broken)
    assert_same(trainer.state(), Trainer(ctx, initial(3)).state())


def test_files_that_are_no_checkpoints(ctx: gpu.Context, tmp_path: Path) -> None:
    trainer = Trainer(ctx, initial())
    (tmp_path / "other.safetensors").write_bytes(safetensors.save({"a": np.zeros(2)}))
    with pytest.raises(CheckpointError, match="not a checkpoint of a trainer"):
        trainer.load(tmp_path / "other.safetensors")
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    with pytest.raises(
        CheckpointError, match="damaged, or is not a safetensors file of kerngen's"
    ):
        trainer.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        trainer.load(tmp_path / "missing")


def test_a_checkpoint_of_other_parameters(ctx: gpu.Context, checkpoint: Path) -> None:
    arrays = initial()
    arrays["hidden.bias"] = np.zeros(10, np.float32)
    with pytest.raises(
        CheckpointError,
        match=r"three\.safetensors: .*has shape \(9,\), expected \(10,\)",
    ):
        Trainer(ctx, arrays).load(checkpoint)
    with pytest.raises(CheckpointError, match=r"'m\.hidden\.bias' is unknown"):
        Trainer(ctx, {"out.bias": np.zeros(4)}).load(checkpoint)


@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    [
        ("step", np.array(-1), gpu.DtypeError, "'step' is"),
        ("step", np.array(1.5), gpu.DtypeError, "'step' is"),
        (
            "m.out.bias",
            np.zeros(4),
            gpu.DtypeError,
            "has dtype float64; expected float32",
        ),
        ("step", np.array(1 << 40), gpu.DtypeError, "'step' is 1099511627776"),
        ("extra", np.zeros(4), gpu.ShapeError, "'extra' is unknown"),
    ],
)
def test_states_that_are_wrong(
    ctx: gpu.Context,
    name: str,
    value: NDArray[Any],
    error: type[Exception],
    says: str,
) -> None:
    trainer = trained(ctx, 1)
    state = trainer.state()
    with pytest.raises(error, match=says):
        trainer.load_state(state | {name: value})
    assert_same(trainer.state(), state)
