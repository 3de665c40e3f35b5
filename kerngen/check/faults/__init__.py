"""The checker's diagnostics: one class each, grouped by the hundreds of their codes."""
