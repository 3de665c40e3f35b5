"""Tests of kerngen.emit and of what emitted modules compute with."""
