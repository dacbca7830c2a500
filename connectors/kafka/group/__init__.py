"""Membership in a consumer group, which assigns partitions to processes."""
