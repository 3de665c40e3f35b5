"""Tuning: the schedules of a kernel that are fastest here, found by trying them.

`candidates.py` has what is tried, `trial.py` compiles, checks and times it, `search.py`
decides what comes next, and `write.py` makes a file of the winners.
"""
