"""Stages to shaders: one module per strategy."""
