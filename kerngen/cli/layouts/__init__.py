"""The explanations that `kerngen layout --explain` prints."""
