"""Buffers between guard zones: which writes are faults, and which are uploads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime.device.gpu import COPY_DST, COPY_SRC, STORAGE
from kerngen.verify.guarded import (
    BEFORE,
    BEHIND,
    Guarded,
    GuardFill,
    Leased,
    guarded,
)

USAGE = STORAGE | COPY_DST | COPY_SRC
FILL = GuardFill("each byte another", 0x01020304, step=0x10101010)


@pytest.fixture(scope="module")
def held() -> Iterator[Guarded]:
    with guarded() as found:
        yield found


def faults(held: Guarded, nbytes: int, *writes: tuple[str, int, int]) -> list[str]:
    """The faults of a buffer of `nbytes` after uploads, copies and clears of some bytes.

    Each is `(kind, offset, size)`; the second fault is that of a narrow integer's buffer.
    """
    device = held.device
    device.start(FILL)
    buffer, source = (device.create_buffer(size=32, usage=USAGE) for _ in range(2))
    encoder = device.create_command_encoder()
    for kind, offset, size in writes:
        if kind == "upload":
            device.queue.write_buffer(buffer, offset, bytes(size))
        elif kind == "copy":
            encoder.copy_buffer_to_buffer(source, 0, buffer, offset, size)
        else:
            encoder.clear_buffer(buffer, offset, size)
    device.queue.submit([encoder.finish()])
    (found,) = device.read([buffer])
    leased = Leased(nbytes, buffer)
    return [leased.fault(found, by_words=by_words) for by_words in (False, True)]


@pytest.mark.parametrize("kind", ["upload", "copy", "clear"])
def test_what_the_host_writes_up_to_a_word_is_no_fault(
    held: Guarded, kind: str
) -> None:
    """A tensor of three halves has 6 bytes; it is written as two words."""
    assert faults(held, 6, (kind, 4, 4)) == ["", ""]
    assert faults(held, 6, (kind, 0, 8)) == ["", ""]
    assert faults(held, 6, (kind, 0, 8), (kind, 0, 4)) == ["", ""]


@pytest.mark.parametrize("kind", ["upload", "copy", "clear"])
def test_a_write_behind_the_last_word_is_a_fault(held: Guarded, kind: str) -> None:
    text = "something wrote at byte {} of a buffer of 6"
    assert faults(held, 6, (kind, 4, 8)) == [text.format(8)] * 2
    assert faults(held, 6, (kind, 12, 4)) == [text.format(12)] * 2


def test_each_buffer_has_a_word_of_its_own(held: Guarded) -> None:
    held.device.start(FILL)
    made = [held.device.create_buffer(size=8, usage=USAGE) for _ in range(3)]
    assert [buffer.word for buffer in made] == [FILL.of(number) for number in range(3)]


def test_a_binding_reaches_to_the_end_of_the_zone(held: Guarded) -> None:
    """So a shader finds the pattern behind a tensor, not zeros."""
    buffer = held.device.create_buffer(size=8, usage=USAGE)
    assert buffer.binding(4) == {
        "buffer": buffer.whole,
        "offset": BEFORE + 4,
        "size": 4 + BEHIND,
    }


def test_the_rest_of_a_word_may_be_zeros_of_narrow_integers(held: Guarded) -> None:
    """As a shader writes it: the host has filled nothing."""
    buffer = held.device.create_buffer(size=8, usage=USAGE)
    found = np.full(buffer.whole.size // 4, buffer.word, np.uint32).view(np.uint8)
    found[BEFORE : BEFORE + 8] = 0
    leased = Leased(5, buffer)
    assert leased.fault(found, by_words=True) == ""
    assert leased.fault(found, by_words=False).startswith("something wrote at byte 5 ")
    found[BEFORE + 7] = 1
    assert leased.fault(found, by_words=True).startswith("something wrote at byte 5 ")
    found[BEFORE - 1] = 0
    assert leased.fault(found, by_words=True).startswith("something wrote at byte -1 ")


# Blocks of a pattern, and the device


def leased_of(held: Guarded) -> list[tuple[int, int]]:
    return [(each.nbytes, each.buffer.word) for each in held.leased]


def test_a_block_has_buffers_of_its_own(held: Guarded) -> None:
    """Each is full of the block's pattern; none is recorded before it or behind it."""
    for pattern in (FILL, GuardFill("another", 0x01010101), FILL):
        with held.under(pattern):
            x = held.ctx.tensor(np.ones(5, np.float32))
        assert leased_of(held) == [(20, pattern.word)]
        assert held.fault() == ""
        assert x.numpy().tolist() == [1] * 5
    held.ctx.tensor(np.ones(5, np.float32))
    assert leased_of(held) == [(20, FILL.word)]
    with held.under(FILL):
        pass
    assert leased_of(held) == []
    assert held.fault() == ""


def test_a_zone_that_changed_is_told(held: Guarded) -> None:
    with held.under(FILL):
        held.ctx.tensor(np.ones(5, np.float32))
    held.check("a call")
    (leased,) = held.leased
    held.device.queue.write_buffer(leased.buffer.whole, 0, bytes(4))
    text = r"^a call: something wrote at byte -4096 of a buffer of 20$"
    with pytest.raises(AssertionError, match=text):
        held.check("a call")


def test_a_device_lasts_until_it_is_lost_or_the_block_ends() -> None:
    x = np.ones(5, np.float32)
    with guarded() as own:
        first = own.ctx
        own.renew()
        assert own.ctx is first
        own.lost = True
        own.renew()
        assert own.ctx is not first
        assert not own.lost
        assert {*own.device.features} == {*first.device.features}
        last = own.ctx
        assert last.tensor(x).numpy().tolist() == [1] * 5
    with pytest.raises(gpu.DeviceLost):
        last.tensor(x).numpy()
