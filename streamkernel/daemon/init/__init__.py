"""What `streamkernel init` does: a configuration made from the first lines of a file."""
