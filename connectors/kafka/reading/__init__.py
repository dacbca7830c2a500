"""A topic as a source: records out of it, in an order, from where a checkpoint says."""
