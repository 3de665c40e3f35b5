"""The language's grammar and its syntax tree."""
