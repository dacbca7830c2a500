"""The experiments of the DSG and the CDSG paper, beside their baselines: `python -m benchmarks.paper`."""
