"""Templates of new projects."""
