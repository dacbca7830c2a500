"""The status page, and the JSON that it draws: figures, their history of an hour, and the last dead letters."""
