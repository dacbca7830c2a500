"""The state of a run as a whole: what a checkpoint holds of all parts, taken and restored."""
