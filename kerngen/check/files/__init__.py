"""Checking whole files, and the items that they import from each other."""
