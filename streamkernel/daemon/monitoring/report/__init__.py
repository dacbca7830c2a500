"""The report of an evaluation: one HTML document that needs no other file, no script and no network."""
