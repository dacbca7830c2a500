"""The loop: records in, test, then train, lines out, and the account of it all."""
