"""A topic read as kafka-python reads it, with the odd corners smoothed: by the source, the sink and the group."""
