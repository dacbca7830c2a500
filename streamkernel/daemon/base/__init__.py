"""What all parts of the daemon share: errors, events, counts, retries, fault points. Imports none of them."""
