"""A place in a consumer group: which partitions are this process's."""
