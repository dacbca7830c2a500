"""What `streamkernel replay` does: mended dead letters go through the model of a checkpoint, each once."""
