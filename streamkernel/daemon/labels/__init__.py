"""Late labels: a stage that joins them with their records, and the records and labels that wait."""
