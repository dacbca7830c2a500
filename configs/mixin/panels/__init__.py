"""The panels of the boards, row by row."""
