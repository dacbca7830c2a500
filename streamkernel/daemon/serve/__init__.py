"""The prediction service: predictions over HTTP from another process's checkpoints, and a journal of what it learns."""
