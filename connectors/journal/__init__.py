"""A journal: records in an SQLite database, appended by `streamkernel serve` and read by the run that learns."""
