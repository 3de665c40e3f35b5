"""Reports of sources as data, for `check --json`, `show --json` and `layout`."""
