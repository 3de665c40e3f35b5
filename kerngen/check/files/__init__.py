"""Files: what they see of each other, and what they are without their faults."""
