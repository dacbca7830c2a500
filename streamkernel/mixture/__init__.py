"""The mixture of a growing machine: several heads on one map of random features."""
