"""The mixin: its files, its rules tried by promtool, and its boards."""
