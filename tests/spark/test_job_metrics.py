"""A job that goes on: its metrics have the daemon's names, and a signal ends it with all that was learned kept."""

import re
import signal
import time
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.spark.jobs import Job, write_lines
from tests.spark.streams import records

DOCUMENTED = (Path(__file__).parent.parent.parent / "docs" / "metrics.md").read_text()
SECONDS = 120


def _scraped(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


def test_metrics_have_the_names_of_the_daemon_and_a_signal_ends_the_job(tmp_path):
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "0.jsonl", records(300, 0))
    with (tmp_path / "in" / "0.jsonl").open("a") as file:
        file.write("not json\n")
    source = {"kind": "jsonl", "path": str(tmp_path / "in"), "watch": True, "target": "y", "target_type": "float"}
    job = Job(tmp_path, source, [{"streamkernel.KernelRegressor": {"seed": 1}}], metrics={"port": 0})
    process = job.start("--trigger", "1 second")
    try:
        assert process.stdout is not None
        url = next(found[1] for line in process.stdout if (found := re.search(r"serving metrics at (\S+)", line)))
        deadline, figures = time.monotonic() + SECONDS, {}
        while figures.get("streamkernel_records_learned_total") != 300 and time.monotonic() < deadline:
            time.sleep(0.5)
            figures = _scraped(url)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, printed
    assert "SIGTERM came" in printed
    assert not any(trace in printed for trace in ("Traceback", "\tat "))
    assert figures["streamkernel_records_learned_total"] == 300
    assert figures["streamkernel_records_consumed_total"] == 301
    assert figures["streamkernel_loss_observations_total"] == 300
    assert figures["streamkernel_random_features"] > 0
    assert figures["streamkernel_progressive_loss"] > 0
    ours = {name for name in figures if name.startswith("streamkernel_")}
    for name in ours:
        own = name.removeprefix("streamkernel_")
        plain = re.sub(r"_(bucket|sum|count)$", "", own)
        assert f"`{own}`" in DOCUMENTED or f"`{plain}`" in DOCUMENTED, name
    assert job.account["learned"] == 300
