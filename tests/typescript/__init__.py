"""ES modules and their types, as texts: what runs them is in tests/web."""
