"""Tests of the shader tree, its printer and its namer."""
