"""Fuzzing the compiler: whatever a file holds, it gives output or diagnostics.

`python -m tests.fuzz` runs a campaign; `--help` says how.
"""
