"""Programs that show how the models and the daemon are used."""
