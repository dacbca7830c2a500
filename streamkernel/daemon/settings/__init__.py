"""From a YAML file to a built plan: read, checked, all that is wrong said at once."""
