"""`kerngen doctor`: an examination of this machine, with advice."""
