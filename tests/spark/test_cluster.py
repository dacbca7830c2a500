"""On executors that are processes of their own: the same result, also where one is killed or runs a task twice."""

import os
import signal
import threading
import time

import pytest
from pyspark import TaskContext
from river.optim.losses import Squared

from streamkernel import KernelLeastSquaresRegressor, KernelRegressor
from streamkernel.spark import learn_batch_of
from tests.spark.streams import BOUNDS, differences, learn_both, records


@pytest.fixture(scope="module")
def cluster(make_session):
    """Two executors of one core, which start a task again elsewhere that takes longer than the others."""
    return make_session(
        "local-cluster[2,1,1024]",
        **{
            "spark.speculation": "true",
            "spark.speculation.multiplier": "1.2",
            "spark.speculation.quantile": "0.4",
            "spark.speculation.minTaskRuntime": "50ms",
            "spark.speculation.interval": "20ms",
            "spark.executor.memory": "512m",
        },
    )


@pytest.mark.parametrize("model", [KernelRegressor(seed=1, dtype="float64"), KernelLeastSquaresRegressor(seed=1)])
def test_two_executors_learn_what_one_machine_does(cluster, model):
    here, there = model.clone(), model.clone()
    learn_both(cluster, here, there, "y", partitions=5)
    largest, others = differences(there, here)
    assert largest < BOUNDS["float64"]
    assert others == []


def test_an_executor_that_is_killed_in_mid_batch_changes_nothing(cluster):
    here, there = (KernelRegressor(seed=1, dtype="float64", blocks_per_step=6) for _ in range(2))
    frames = [records(3000, number) for number in range(2)]
    for frame in frames:
        here.batch_step(frame.drop(columns="y"), frame["y"])
    learn_batch_of(cluster.createDataFrame(frames[0]).repartition(4), there, "y")
    killed: list[int] = []

    def kill() -> None:
        time.sleep(1.0)  # in the midst of a batch of several seconds
        executors = _executors()
        os.kill(executors[0], signal.SIGKILL)
        killed.append(executors[0])

    thread = threading.Thread(target=kill)
    thread.start()
    tally = learn_batch_of(cluster.createDataFrame(frames[1]).repartition(4), there, "y")
    thread.join()
    assert killed
    assert tally.n_learned == 3000
    largest, others = differences(there, here)
    assert largest < BOUNDS["float64"]
    assert others == []


class SlowOnce(Squared):
    """The squared loss, which takes long where a task is tried for the first time on the first partition."""

    def gradient(self, y_true, y_pred):
        context = TaskContext.get()
        if context is not None and context.partitionId() == 0 and context.attemptNumber() == 0:
            time.sleep(3.0)
        return super().gradient(y_true, y_pred)


def test_a_task_that_is_run_twice_counts_once(cluster):
    here, there = KernelRegressor(seed=1, dtype="float64"), KernelRegressor(seed=1, dtype="float64", loss=SlowOnce())
    learn_both(cluster, here, there, "y", partitions=4)
    tracker = cluster.sparkContext._jsc.sc().statusTracker()
    assert tracker is not None
    assert there.n_records == here.n_records == 1100
    largest, others = differences(there, here)
    assert largest < BOUNDS["float64"]
    assert others == ["arguments"]  # the loss is another


def _executors():
    """The processes of the executors."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    command = file.read()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command:
                found.append(int(name))
    return sorted(found)
