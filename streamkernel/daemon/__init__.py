"""The daemon: a validated configuration, the test-then-train loop, checkpoints, metrics and the command line."""
