"""Labels that come late: records are predicted at once, kept, and learnt when their label arrives."""
