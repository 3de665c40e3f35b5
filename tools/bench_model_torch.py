"""The decoder of `bench_model.py` in PyTorch, in f16: eager, and as a CUDA graph.

The graph is what a static cache of transformers comes to: the same kernels at each token,
keys and values of all positions that there is room for, and no Python.  Where transformers
is installed, its own `generate` is timed, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, final

from examples.qwen3 import Config


@final
class TorchDecoder:
    """A decoder with random weights."""

    def __init__(self, torch: Any, config: Config, room: int) -> None:
        """Make weights, caches and tables of angles on the GPU."""
        self._torch = torch
        self._config = config
        head, width = config.head_width, config.width
        own, shared = config.heads * head, config.kv_heads * head
        self.table = self._random(config.vocabulary, width)
        self._gain, self._head_gain = self._random(width), self._random(head)
        self._layers = [
            (
                self._random(own + 2 * shared, width),
                self._random(width, own),
                self._random(2 * config.hidden, width),
                self._random(width, config.hidden),
                *(self._random(1, config.kv_heads, room, head) for _ in range(2)),
            )
            for _ in range(config.layers)
        ]
        self._cosine, self._sine = self._random(room, head), self._random(room, head)
        self._places = torch.arange(room, device="cuda")

    def _random(self, *shape: int) -> Any:
        torch = self._torch
        return torch.randn(*shape, device="cuda", dtype=torch.float16) * 0.02

    def logits(self, ids: Any, at: Any) -> Any:
        """Return the logits after ids, which are at positions of the cache."""
        F, config = self._torch.nn.functional, self._config  # noqa: N806
        x = self.table[ids]
        mask = self._places[None, :] <= at[:, None]
        sizes = [config.heads, config.kv_heads, config.kv_heads]
        for qkv, output, gated, down, keys, values in self._layers:
            n = F.rms_norm(x, (config.width,), self._gain)
            heads = F.linear(n, qkv).view(len(ids), -1, config.head_width)
            q, k, v = heads.split(sizes, dim=1)
            q, k = self._turned(F, q, at), self._turned(F, k, at)
            keys.index_copy_(2, at, k.transpose(0, 1)[None])
            values.index_copy_(2, at, v.transpose(0, 1)[None])
            seen = F.scaled_dot_product_attention(
                q.transpose(0, 1)[None], keys, values, attn_mask=mask, enable_gqa=True
            )
            x = x + F.linear(seen[0].transpose(0, 1).reshape(len(ids), -1), output)
            n = F.rms_norm(x, (config.width,), self._gain)
            opened, passed = F.linear(n, gated).chunk(2, dim=-1)
            x = x + F.linear(F.silu(opened) * passed, down)
        return F.linear(F.rms_norm(x[-1:], (config.width,), self._gain), self.table)

    def _turned(self, F: Any, x: Any, at: Any) -> Any:  # noqa: N803
        x = F.rms_norm(x, (x.shape[-1],), self._head_gain)
        low, high = x.chunk(2, dim=-1)
        other = self._torch.cat([high, low], dim=-1)
        return x * self._cosine[at][:, None] + other * self._sine[at][:, None]


def time_peer(name: str, config: Config, options: Any) -> None:
    """Print the speed of PyTorch at the same sizes."""
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        print(f"{name} PyTorch: no CUDA here")
        return
    with torch.inference_mode():
        _time_decoder(torch, f"{name} PyTorch", config, options)
    try:
        transformers: Any = import_module("transformers")
    except ImportError:
        print(f"{name} transformers is not installed")
        return
    _time_transformers(torch, transformers, name, config)


def _time_decoder(torch: Any, name: str, config: Config, options: Any) -> None:
    room = options.prompt + options.tokens
    model = TorchDecoder(torch, config, room)
    ids, at = (torch.zeros(1, dtype=torch.long, device="cuda") for _ in range(2))
    at += options.prompt

    def token() -> None:
        ids.copy_(model.logits(ids, at)[0].argmax(-1, keepdim=True))

    for _ in range(3):
        token()
    _report(f"{name} eager", _seconds(torch, token, 16))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        token()
    _report(f"{name} CUDA graph", _seconds(torch, graph.replay, options.tokens))
    prompt = torch.arange(options.prompt, device="cuda")
    model.logits(prompt, prompt)
    took = _seconds(torch, lambda: model.logits(prompt, prompt), 2)
    print(
        f"{name} prefill of {options.prompt}: {took * 1e3:.1f} ms, "
        f"{options.prompt / took:.0f} tokens/s",
        flush=True,
    )


def _time_transformers(
    torch: Any, transformers: Any, name: str, config: Config
) -> None:
    sizes = transformers.Qwen3Config(
        num_hidden_layers=config.layers,
        hidden_size=config.width,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_width,
        intermediate_size=config.hidden,
        vocab_size=config.vocabulary,
        tie_word_embeddings=config.tied,
    )
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            sizes, torch_dtype=torch.float16
        )
        ids = torch.ones(1, 64, dtype=torch.long)

    def run(count: int = 32) -> None:
        model.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False)

    run(4)
    _report(f"{name} transformers, eager", _seconds(torch, run, 1) / 32)


def _seconds(torch: Any, call: Callable[[], object], count: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def _report(name: str, took: float) -> None:
    print(f"{name}: {1 / took:7.1f} tokens/s, {took * 1e3:6.3f} ms a token", flush=True)
