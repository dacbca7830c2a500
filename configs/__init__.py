"""Configurations, and the package that writes those of monitoring."""
