"""A journal: an append-only log of JSON records in a folder, written by one process and read by another."""
