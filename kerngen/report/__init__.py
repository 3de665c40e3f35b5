"""What `check --json`, `show --json` and `layout` report, as data: nothing of a terminal."""
