"""Reports as data, for `check --json`, `show --json` and `layout`: nothing of a terminal."""
