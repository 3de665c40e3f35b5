"""Mutation tests: the tests notice when one token of kerngen changes.

`python -m tests.mutants` makes such changes in a copy of the tree; `--help` has its options.
"""
