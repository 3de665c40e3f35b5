"""What is wrong with this machine, from kerngen's point of view, and what to do."""
