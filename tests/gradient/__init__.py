"""Tests of derived gradients."""
