"""Records in files: CSV and JSON lines, plain or compressed, finished or still growing."""
