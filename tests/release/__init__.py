"""What a release holds, and what an install without extras says."""
