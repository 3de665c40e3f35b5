"""Peers: other libraries that are timed on the same work, if installed."""

from __future__ import annotations

from kerngen.bench.peers.find import PEERS, Peer, asked_for, find_peers

__all__ = ["PEERS", "Peer", "asked_for", "find_peers"]
