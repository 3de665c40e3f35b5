"""New projects: a valid name, and the files that one begins with."""
