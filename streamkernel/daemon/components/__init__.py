"""The optional features of the daemon: for each, the settings that turn it on and what they need and exclude."""
