"""The Prometheus metrics of the daemon."""
