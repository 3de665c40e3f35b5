"""Writing generated files to disk: atomically, with stale files removed."""
