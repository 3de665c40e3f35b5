"""One canonical form of `.kern` files: text → concrete syntax tree → document → text."""
