"""What generated ES modules and the npm package do, in node and in browsers."""
