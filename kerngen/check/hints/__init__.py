"""What to write instead: the words of hints that need more than a template."""
