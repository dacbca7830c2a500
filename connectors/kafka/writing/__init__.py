"""The sink: lines to a topic, each once."""
