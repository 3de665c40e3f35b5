"""Prompts in, tokens out: prefill in pieces, then one token after the other."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from examples.qwen3.activations import PIECE
from examples.qwen3.errors import ModelError
from examples.qwen3.model import Cache, Model
from examples.qwen3.sampling import Sampler, greedy
from examples.qwen3.step import Step
from examples.qwen3.text import Tokenizer
from kerngen.runtime import LateRead, Matrix, f32, u32

Reason: TypeAlias = Literal["", "stop", "length"]

LATE = 2
"""How many tokens are recorded before the first is read: Python and device overlap."""


@final
@dataclass(frozen=True)
class Piece:
    """A token, and how it goes."""

    token: int
    text: str
    """What it completes; empty without a tokenizer."""
    reason: Reason
    """Why it is the last one; empty where it is not."""
    prompt_tokens: int
    tokens: int
    first_seconds: float
    """From the start to the first token."""
    seconds: float
    """From the first token to this one."""

    @property
    def prompt_rate(self) -> float:
        """Tokens of the prompt a second."""
        return self.prompt_tokens / self.first_seconds

    @property
    def rate(self) -> float:
        """Tokens a second, after the first."""
        return (self.tokens - 1) / self.seconds if self.seconds else 0.0


def generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: str | Sequence[int],
    *,
    max_tokens: int = 100,
    sampler: Sampler = greedy,
) -> str:
    """Return the text that follows a prompt; the arguments are `stream_generate`'s."""
    pieces = stream_generate(
        model, tokenizer, prompt, max_tokens=max_tokens, sampler=sampler
    )
    return "".join(piece.text for piece in pieces)


def generate_ids(
    model: Model,
    ids: Sequence[int],
    *,
    max_tokens: int = 100,
    sampler: Sampler = greedy,
) -> list[int]:
    """Return the tokens that follow ids; the arguments are `stream_generate`'s."""
    pieces = stream_generate(model, None, ids, max_tokens=max_tokens, sampler=sampler)
    return [piece.token for piece in pieces]


def stream_generate(
    model: Model,
    tokenizer: Tokenizer | None,
    prompt: str | Sequence[int],
    *,
    max_tokens: int = 100,
    sampler: Sampler = greedy,
    cache: Cache | None = None,
) -> Iterator[Piece]:
    """Yield one token after the other, up to an end of text or `max_tokens`.

    Args:
        model: Computes.
        tokenizer: Makes ids of a text, and text of ids; not needed for ids.
        prompt: A text, or ids.
        max_tokens: How many to yield at most.
        sampler: Chooses each token.
        cache: What came before the prompt; by default nothing.

    Raises:
        ModelError: If the prompt is empty, has unknown ids, or doesn't fit in the cache.
    """
    ids = _ids(model, tokenizer, prompt)
    if max_tokens < 1:
        raise ModelError(f"max_tokens is 1 or more, not {max_tokens}.")
    if cache is None:
        cache = model.make_cache(_room(model, len(ids), max_tokens))
    start = time.perf_counter()
    stream = tokenizer.stream() if tokenizer else None
    first = 0.0
    for number, token in enumerate(_tokens(model, ids, cache, max_tokens, sampler), 1):
        now = time.perf_counter()
        first = first or now
        ends = token in model.config.eos
        reason: Reason = "stop" if ends else "length" if number == max_tokens else ""
        yield Piece(
            token=token,
            text=stream.step(token) if stream and not ends else "",
            reason=reason,
            prompt_tokens=len(ids),
            tokens=number,
            first_seconds=first - start,
            seconds=now - first,
        )
        if reason:
            return


def prefill(model: Model, ids: Sequence[int], cache: Cache) -> Matrix[f32]:
    """Run a prompt in pieces; return the logits after its last token."""
    for start in range(0, len(ids) - 1, PIECE):
        stop = min(start + PIECE, len(ids) - 1)
        model.hidden(model.ctx.vector(ids[start:stop], u32), cache)
    return model.logits(model.ctx.vector(ids[-1:], u32), cache)


def _tokens(
    model: Model, ids: Sequence[int], cache: Cache, count: int, sampler: Sampler
) -> Iterator[int]:
    """Yield tokens late: the next ones are recorded before one is read."""
    token = sampler(prefill(model, ids, cache), 0)
    waiting = deque([token.begin_read()])
    with closing(Step(model, cache, sampler, token)) as step:
        for place in range(1, count):
            waiting.append(step.next(place))
            if len(waiting) > LATE:
                yield _read(waiting)
        while waiting:
            yield _read(waiting)


def _read(waiting: deque[LateRead]) -> int:
    return int(waiting.popleft().numpy()[0])


def _ids(
    model: Model, tokenizer: Tokenizer | None, prompt: str | Sequence[int]
) -> Sequence[int]:
    if isinstance(prompt, str):
        if tokenizer is None:
            raise ModelError("The folder has no tokenizer.json: give ids, not text.")
        prompt = tokenizer.encode(prompt)
    if not prompt:
        raise ModelError("The prompt is empty: there is nothing to go on from.")
    unknown = next((i for i in prompt if not 0 <= i < model.config.vocabulary), None)
    if unknown is not None:
        raise ModelError(
            f"The prompt has the id {unknown}; the vocabulary has "
            f"{model.config.vocabulary}."
        )
    return prompt


def _room(model: Model, prompt: int, count: int) -> int:
    """Return how many positions a cache needs; the last token is not run."""
    most = model.config.positions
    if prompt + count - 1 > most:
        raise ModelError(
            f"{prompt} tokens of the prompt and {count} more are too many for the model's "
            f"{most} positions."
        )
    return prompt + count - 1
