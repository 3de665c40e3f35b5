"""Trainings here beside PyTorch's, of the same networks."""

from __future__ import annotations

from tests.without_triton import hide_triton

hide_triton()
