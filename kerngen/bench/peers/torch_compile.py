"""PyTorch's functions as `torch.compile` makes them, on CUDA."""

from __future__ import annotations

from importlib import import_module

from kerngen.bench.peers.find import Peer
from kerngen.bench.peers.torch import Torch


def make(kind: str) -> Peer:
    """Return the peer; raise what PyTorch raises where it can't compile, without Triton say."""
    torch = import_module("torch")
    if kind != "gpu" or not torch.cuda.is_available():
        raise RuntimeError("it is timed on CUDA only")
    torch.compile(torch.relu)(torch.zeros(4, device="cuda"))
    return Torch(torch, "cuda", compiled=True)
