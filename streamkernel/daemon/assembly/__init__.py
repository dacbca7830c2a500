"""The one place where a configuration becomes parts: sources, sinks, the model, what moves the records."""
