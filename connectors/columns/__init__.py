"""How the columns of a source become inputs: which ones, of what type, and what means that a value is missing."""
