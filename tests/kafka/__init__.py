from tests.kafka.plain_clients import tidy

tidy()
