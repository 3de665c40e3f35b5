"""Source text, spans, and diagnostics with their rendering."""
