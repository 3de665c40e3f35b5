"""Tests of kerngen.layout and of the uniform structs laid out by it."""
