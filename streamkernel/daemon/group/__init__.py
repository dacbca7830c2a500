"""Group mode: one model for each partition of a topic, shared out among the members of a consumer group.

A member reads no record. It holds its place in the group and supervises one process for each partition it owns, which
is the ordinary daemon on that one partition. So heartbeats never wait for learning, models use all cores, a record
that kills its process kills the daemon of one partition, and markers, checkpoints and the promises that rest on them
are those of the ordinary daemon. What keeps two processes from learning one partition is not the group, which may
believe what it likes of a member it has not heard, but the lock on the partition's checkpoint directory.
"""
