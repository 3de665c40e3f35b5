"""Expressions, judged by the rules of their place."""
