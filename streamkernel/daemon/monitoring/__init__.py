"""What the daemon shows of itself: log lines, progress, tables, metrics, the status page."""
