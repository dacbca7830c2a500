"""The sink: lines to a topic, each exactly once by transactions.

A checkpoint decides which lines count, and the broker learns that decision afterwards:

1. `flush` waits until the broker has every line of the open transaction. It gives the transaction a number and returns
   a mark with that number, the number committed before it, and the lines themselves.
2. The daemon writes the checkpoint with the mark.
3. `commit` commits the transaction. Inside it the producer commits the number as the offset of a consumer group, so the
   lines and the number become visible together.

After a crash, `init_transactions` aborts the open transaction and waits for one that was being committed. One request
for the group's offset then decides:

- The broker has the number of the mark: the lines of the mark are in the topic.
- The broker has the number before it: the lines of the mark are not in the topic. They are sent again from the mark.
- The broker has another number, or none: another checkpoint, or none, belongs to the topic. The sink refuses, or with
  ``existing: append`` writes on.

Lines after the checkpoint were never committed: the daemon learns their records again and writes their lines again.
Nothing depends on the order of the lines, on their content, or on how the records come a second time. A producer that
fails is replaced by one with the same transactional id, by the same rule.

Without a transactional id, a line counts as soon as the broker has it, and a restart may write lines twice.
"""
