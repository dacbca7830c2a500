"""Kills of the daemon in the process of the test, and one machine that tries them on every kind of run over files."""
