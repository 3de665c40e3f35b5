"""PyTorch compiled by `torch.compile` as a peer, on CUDA."""

from __future__ import annotations

from importlib import import_module

from kerngen.bench.peers.find import Peer
from kerngen.bench.peers.torch import Torch


def make(kind: str) -> Peer:
    """Return the peer; raise PyTorch's error if it can't compile, as without Triton."""
    torch = import_module("torch")
    if kind != "gpu" or not torch.cuda.is_available():
        raise RuntimeError("it is timed on CUDA only")
    torch.compile(torch.relu)(torch.zeros(4, device="cuda"))
    return Torch(torch, "cuda", compiled=True)
