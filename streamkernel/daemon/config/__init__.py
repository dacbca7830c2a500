"""The configuration: read from YAML, validated, all mistakes in one error. Builds nothing."""
