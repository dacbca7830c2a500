"""The step sizes that plain machines are chosen from, on training rows that are kept apart."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from river.optim.base import Scheduler
from river.optim.schedulers import Constant, InverseScaling

from benchmarks.paper.problems import Problem
from benchmarks.paper.runs import Make, follow

#: theta of constant steps, and of steps theta / sqrt(t): from shorter ones than the default to longer ones than any
#: that was chosen so far.
CONSTANT, FALLING = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (1.0, 4.0, 16.0, 64.0, 256.0)
#: A machine with a schedule, None for the default rule, and a seed.
Stepped = Callable[[Scheduler | None, int], Make]


def schedules() -> dict[str, Scheduler]:
    """All schedules by name."""
    return {
        **{f"step {theta:g}": Constant(theta) for theta in CONSTANT},
        **{f"step {theta:g} / sqrt(t)": InverseScaling(theta, power=0.5) for theta in FALLING},
    }


def best_step(
    make: Stepped,
    problem: Problem,
    batch_size: int,
    passes: float = 1.0,
    seeds: Sequence[int] = (1, 2, 3),
    found: Mapping[str, Scheduler] | None = None,
) -> tuple[float, str]:
    """Return the least error and its schedule on every fifth training row, the mean over seeds, after the other rows.

    `found` are the schedules by name, all of `schedules` by default. The test rows have no part in the choice.
    """
    part = problem.split(np.arange(problem.n) % 5 == 0)
    found = schedules() if found is None else found
    size = min(batch_size, part.n)
    errors = {
        name: np.mean([follow(make(step, seed), part, size, seed, passes, looks=1)[-1].error for seed in seeds])
        for name, step in found.items()
    }
    print(f"{problem.name}: " + ", ".join(f"{name} {error:.4f}" for name, error in errors.items()), flush=True)
    best = min(errors, key=lambda name: float(errors[name]))
    return float(errors[best]), best


def listed(thetas: Sequence[float]) -> str:
    """Numbers, for a sentence."""
    return ", ".join(f"{theta:g}" for theta in thetas)
