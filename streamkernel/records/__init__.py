"""From records to rows of numbers and back: inputs by name, targets, data frames, and what a call brings."""
