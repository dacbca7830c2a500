"""A topic as a sink: lines into it, each once."""
