"""The batch step: one step of a machine on all rows given, as sums over them that may be taken anywhere."""
