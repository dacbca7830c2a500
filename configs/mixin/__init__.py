"""A monitoring mixin for Prometheus and Grafana; `python -m configs.mixin` writes its files."""
