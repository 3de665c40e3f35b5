"""`kerngen bind`: typed Python for existing WGSL."""
