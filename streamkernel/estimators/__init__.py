"""The River-facing classes, one task a file."""
