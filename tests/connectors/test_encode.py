"""Lines as JSON, and what they cost while they wait."""

from __future__ import annotations

import tracemalloc

from connectors.encode import to_json


def test_a_line_that_waits_takes_no_more_memory_than_it_is_long() -> None:
    tracemalloc.start()
    try:
        lines = [to_json({"prediction": "yes", "probabilities": {"no": number / 7}}) for number in range(1000)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < sum(len(line) + 100 for line in lines)
