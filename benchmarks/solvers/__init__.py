"""The other solvers that the window solvers are measured beside, the problems, and how a run is followed."""
