"""The formatter: text to concrete syntax tree to document to text."""
