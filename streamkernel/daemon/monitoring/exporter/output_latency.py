"""The histogram of the time from the reading of a record to the moment at which others can read its line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

__all__ = ["OutputLatency"]

# Close to each other about the default of flush_seconds, and up to the usual time between two checkpoints and beyond.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class OutputLatency(Collector):
    """`output_latency_seconds` of each output, which takes all lines of a chunk at once.

    Parameters
    ----------
    prefix
        What the name begins with.
    outputs
        The keys of the outputs.

    Examples
    --------
    >>> latency = OutputLatency("streamkernel", ["predictions"])
    >>> latency.observe("predictions", 0.3, n_lines=512)
    >>> [family] = latency.collect()
    >>> [sample.value for sample in family.samples if sample.labels.get("le") in ("0.25", "0.5")]
    [0, 512]

    """

    def __init__(self, prefix: str, outputs: Iterable[str]) -> None:
        self._name = f"{prefix}_output_latency_seconds"
        self._counts = {key: [0] * (len(_BOUNDS) + 1) for key in outputs}
        self._sums = dict.fromkeys(self._counts, 0.0)

    def observe(self, output: str, seconds: float, n_lines: int) -> None:
        """Count lines that others can read, `seconds` after the daemon read their records."""
        self._counts[output][bisect_left(_BOUNDS, seconds)] += n_lines
        self._sums[output] += n_lines * seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the histogram; see `prometheus_client.registry.Collector`."""
        text = "Seconds from reading a record until its line is visible: in the file, or committed."
        family = HistogramMetricFamily(self._name, text, labels=["output"])
        names = [*map(floatToGoString, _BOUNDS), "+Inf"]
        for output, counts in self._counts.items():
            family.add_metric([output], list(zip(names, accumulate(counts), strict=True)), self._sums[output])
        yield family
