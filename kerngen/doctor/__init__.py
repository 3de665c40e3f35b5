"""The examination of `kerngen doctor`: what is wrong with this machine, and what to do."""
