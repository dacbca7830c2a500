"""The loop: records in, predict, then learn, lines out, and the counts of it all."""
