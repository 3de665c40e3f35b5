"""The formatter: from text to a concrete syntax tree, to a document, to text."""
