"""The tables and explanations that `kerngen layout` prints."""
