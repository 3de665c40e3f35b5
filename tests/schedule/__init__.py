"""Tests of the strategies: which fit, what they choose, and how they run."""
