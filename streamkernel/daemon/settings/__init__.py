"""From a YAML file to settings: read, checked, all that is wrong said at once. Builds nothing."""
