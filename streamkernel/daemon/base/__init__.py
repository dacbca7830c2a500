"""What all parts of the daemon share: errors, events, accounts, retries, fault points. Imports none of them."""
