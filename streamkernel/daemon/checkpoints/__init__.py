"""What survives the process: checkpoint files, the model in them, and the way back."""
