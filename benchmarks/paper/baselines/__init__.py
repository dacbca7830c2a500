"""The published algorithms that the two papers compare with, in numpy, a file each."""
