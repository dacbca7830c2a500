"""What every part of the Kafka connector shares: the client, its options and its sockets. Imports no other part."""
