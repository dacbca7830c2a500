"""Records in, records out: the ports and one file a system. Imports nothing of streamkernel."""
