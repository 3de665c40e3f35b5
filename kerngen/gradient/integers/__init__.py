"""Integers in derivation: proofs about indices and lengths, equations of subscripts."""
