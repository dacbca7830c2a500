"""What the daemon serves: metrics by their public names, probes, a status page, protected where asked."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from river import linear_model, tree

from connectors import Position
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier
from streamkernel.daemon.base.counts import LabelCounts, RecordCounts
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.lag import LagCollector
from streamkernel.daemon.monitoring.metrics import Exporter
from streamkernel.daemon.monitoring.server import Server, ServerError
from streamkernel.daemon.monitoring.view import View, status_page
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.chunk_result import ChunkResult, LabelChunk
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher, write_stream

TLS = Path(__file__).with_name("tls")
DASHBOARD = Path(__file__).parents[2] / "configs/grafana/streamkernel.json"

ALWAYS = {
    *("records_consumed_total", "records_learned_total", "records_predicted_total", "records_unlabelled_total"),
    *("records_skipped_total", "records_dead_lettered_total", "loss_observations_total", "checkpoint_failures_total"),
    *("lifetime_records", "progressive_loss", "loss_sum", "rolling_metric", "model_memory_bytes"),
    *("last_record_timestamp_seconds", "checkpoint_last_success_timestamp_seconds", "checkpoint_size_bytes"),
    *("predict_duration_seconds", "learn_duration_seconds", "checkpoint_duration_seconds", "build_info"),
    *("consumer_lag_records", "clipped_targets_total", "ignored_labels_total", "not_finite_total"),
    "ignored_inputs_total",
}
OURS = {"random_features"}
GROWING = OURS | {"feature_blocks_total", "max_features"}
ADAPTIVE = OURS | {"expert_weight", "input_importance"}
LATE = {
    *("labels_consumed_total", "labels_matched_total", "labels_expired_total", "labels_early_total"),
    *("labels_unmatched_total", "labels_doubled_total", "labels_skipped_total", "labels_dead_lettered_total"),
    *(
        "labels_pending",
        "labels_waiting",
        "labels_max_pending",
        "labels_pending_bytes",
        "labels_max_pending_bytes",
        "label_delay_seconds",
        "record_keys_refused_total",
    ),
}


def get(url: str, user: str | None = None, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    headers = {} if user is None else {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextmanager
def serving(health: Health | None = None, registry: CollectorRegistry | None = None, **settings: Any) -> Iterator[str]:
    server = Server(MetricsConfig(port=0, **settings), registry or CollectorRegistry(), health or Health())
    try:
        yield server.url
    finally:
        server.close()


def values_of(text: str) -> dict[str, float]:
    """The samples by name and labels, without the prefix."""
    return {
        sample.name.removeprefix("streamkernel_")
        + (
            "{" + ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items())) + "}" if sample.labels else ""
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exported(exporter: Exporter) -> set[str]:
    """The names as they are served, of a histogram its base name."""
    names = set()
    for family in exporter.registry.collect():
        suffix = "_total" if family.type == "counter" else ""
        names.add(family.name.removeprefix("streamkernel_") + suffix)
    return names


def test_the_names_are_these_and_no_others() -> None:
    assert exported(Exporter(KernelClassifier(), ["accuracy"], 1000)) == ALWAYS | GROWING
    assert exported(Exporter(AdaptiveKernelClassifier(), ["accuracy"], 1000)) == ALWAYS | ADAPTIVE
    assert exported(Exporter(AdaptiveKernelRegressor(), ["mae"], 1000)) == ALWAYS | ADAPTIVE
    assert exported(Exporter(linear_model.LogisticRegression(), ["accuracy"], 1000)) == ALWAYS
    assert exported(Exporter(tree.HoeffdingTreeRegressor(), ["mae"], 1000)) == ALWAYS
    join = LabelJoin("id", "y", 60.0, 10)
    assert exported(Exporter(linear_model.LogisticRegression(), ["accuracy"], 1000, join)) == ALWAYS | LATE


def test_counters_start_at_0_and_the_lifetime_goes_on(home: Home, launcher: Launcher) -> None:
    write_stream(home.folder / "stream.csv", 1500)
    metrics = {"port": 0, "window": 500}
    home.configure(metrics=metrics)
    assert launcher.call(home, "run", "config.yaml", "--max-records", "600").returncode == 0
    before = home.header()["account"]
    home.configure(source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}, metrics=metrics)
    daemon = launcher.start(home, "run", "config.yaml")
    url = daemon.wait_for(r"serving metrics at (http://127\.0\.0\.1:\d+)/metrics")[1]
    daemon.wait_for("reading csv file")
    while (values := values_of(get(f"{url}/metrics")[1]))["lifetime_records"] < 1500:
        time.sleep(0.05)
    assert get(f"{url}/healthz") == (200, "ok\n")
    assert get(f"{url}/readyz") == (200, "ready\n")
    status, page = get(f"{url}/")
    assert status == 200
    assert "csv file stream.csv, followed" in page
    assert get(f"{url}/elsewhere")[0] == 404
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0
    after = home.header()["account"]
    assert after["consumed"] == 1500
    for name, key in (
        ("consumed", "consumed"),
        ("learned", "learnt"),
        ("predicted", "predicted"),
        ("skipped", "skipped"),
    ):
        assert values[f"records_{name}_total"] == after[key] - before[key]
    dead = sum(value for name, value in values.items() if name.startswith("records_dead_lettered_total"))
    assert dead == after["dead"] - before["dead"]
    assert values["records_dead_lettered_total{reason=csv_width}"] > 0
    assert values["loss_observations_total"] == values["records_learned_total"]
    assert 0 < values["progressive_loss"] < 2
    assert 0.5 < values["rolling_metric{metric=accuracy,window=500}"] <= 1
    model = home.header()["model"]
    assert values["random_features"] == model["n_features"]
    assert values["max_features"] == 256
    steps = values["feature_blocks_total{action=grown}"] + values["feature_blocks_total{action=reused}"]
    assert 0 < steps < model["n_grown"] + model["n_reused"]
    assert values["checkpoint_size_bytes"] > 0
    assert values["checkpoint_last_success_timestamp_seconds"] > 1.7e9
    assert values["learn_duration_seconds_count"] > 0
    assert values["model_memory_bytes"] > 0


def test_a_chunk_is_counted() -> None:
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10)
    account = RecordCounts(consumed=9, predicted=6, learnt=4, unlabelled=2, skipped=1, dead=2)
    processed = ChunkResult(account, losses=[0.5, 0.25], learn_seconds=3e-6)
    processed.dead.update(["infinite", "refused"])
    exporter.chunk(processed)
    exporter.refresh(100, 5.0, 0.375, -0.75, {"accuracy": 0.5})
    with serving(registry=exporter.registry) as url:
        values = values_of(get(f"{url}/metrics")[1])
    assert values["records_consumed_total"] == 9
    assert values["records_dead_lettered_total{reason=refused}"] == 1
    assert values["records_dead_lettered_total{reason=nested}"] == 0
    assert values["lifetime_records"] == 100
    assert values["loss_sum"] == -0.75
    assert values["rolling_metric{metric=accuracy,window=10}"] == 0.5
    assert values["learn_duration_seconds_bucket{le=5e-06}"] == 1


class TestLag:
    """What is consumed and what is still to come add up, whenever they are asked for."""

    def scrape(self, exporter: Exporter, query: str = "") -> dict[str, float]:
        with serving(registry=exporter.registry) as url:
            return values_of(get(f"{url}/metrics{query}")[1])

    def test_it_is_what_the_source_knows_of_less_what_was_dealt_with(self) -> None:
        source: Any = SimpleNamespace(known={})
        labels: Any = SimpleNamespace(known={})
        exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10, None, source, labels)
        assert not [name for name in self.scrape(exporter) if name.startswith("consumer_lag_records")]
        source.known = {("clicks", 0): 100, ("clicks", 3): 50}
        labels.known = {("bought", 3): 9}
        late = LabelChunk(LabelCounts(taken=4), next=Position("b", 3, 4))
        exporter.chunk(ChunkResult(RecordCounts(consumed=7), next=Position("c", 3, 7), late=late))
        exporter.chunk(ChunkResult(RecordCounts(consumed=2), next=Position("c", 3, 9), late=LabelChunk(LabelCounts())))
        found = self.scrape(exporter)
        assert found["records_consumed_total"] == 9
        assert {name: value for name, value in found.items() if name.startswith("consumer_lag")} == {
            "consumer_lag_records{partition=0,topic=clicks}": 100,
            "consumer_lag_records{partition=3,topic=clicks}": 41,
            "consumer_lag_records{partition=3,topic=bought}": 5,
        }
        source.known = {("clicks", 3): 60}  # nothing but a scrape is needed to see it
        assert self.scrape(exporter)["consumer_lag_records{partition=3,topic=clicks}"] == 51
        assert self.scrape(exporter, "?name[]=streamkernel_records_consumed_total") == {"records_consumed_total": 9}

    def test_the_two_are_of_one_moment(self) -> None:
        collector = LagCollector("streamkernel", SimpleNamespace(known={("t", 0): 30_000}), None)  # type: ignore[arg-type]
        done = threading.Event()

        def loop() -> None:
            for number in range(3000):
                collector.chunk(ChunkResult(RecordCounts(consumed=10), next=Position("c", 0, 10 * number + 10)))
            done.set()

        thread = threading.Thread(target=loop)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            thread.start()
            sums = []
            while not done.is_set():
                consumed, lag = collector.collect()
                sums.append(consumed.samples[0].value + lag.samples[0].value)
            thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert set(sums) == {30_000}


@pytest.mark.parametrize("model", [KernelClassifier(), AdaptiveKernelClassifier()], ids=["growing", "adaptive"])
def test_every_metric_is_typed_and_explained(model: Any) -> None:
    exporter = Exporter(model, ["accuracy"], 1000)
    for family in exporter.registry.collect():
        assert family.documentation.endswith(".")
        # Prometheus keeps _sum for histograms; what may fall is no counter.
        assert (family.type == "unknown") == (family.name == "streamkernel_loss_sum")


def learnt(n_inputs: int, records: int = 120) -> AdaptiveKernelClassifier:
    """A model that has learnt its first metric, of inputs that matter the less the later they come."""
    draw = random.Random(1)
    xs = [{f"x{j}": draw.gauss(0, 1) for j in range(n_inputs)} for _ in range(records)]
    model = AdaptiveKernelClassifier(n_features=16, seed=1)
    model.advance(xs, [sum(value / (1 + j) for j, value in enumerate(x.values())) > 0 for x in xs])
    return model


class TestMixture:
    def test_a_scrape_gives_weights_and_importances(self) -> None:
        model = learnt(3)
        with serving(registry=Exporter(model, ["accuracy"], 10).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        for expert, weight in model.expert_weights.items():
            assert values[f"expert_weight{{expert={expert}}}"] == weight
        for name, share in model.feature_importances_.items():
            assert values[f"input_importance{{input={name}}}"] == share
        assert sum(value for name, value in values.items() if name.startswith("expert_weight")) == pytest.approx(1)
        assert sum(value for name, value in values.items() if name.startswith("input_importance")) == pytest.approx(1)
        assert values["random_features"] == 16

    def test_before_the_first_record_there_are_none(self) -> None:
        with serving(registry=Exporter(AdaptiveKernelRegressor(), ["mae"], 10).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        assert not [name for name in values if name.startswith(("expert_weight", "input_importance"))]

    def test_only_the_most_important_inputs_are_exported(self) -> None:
        model = learnt(50)
        with serving(registry=Exporter(model, ["accuracy"], 10).registry) as url:
            text = get(f"{url}/metrics")[1]
        found = {name: value for name, value in values_of(text).items() if name.startswith("input_importance")}
        assert sorted(found.values()) == sorted(model.feature_importances_.values())[-20:]
        (explained,) = re.findall(r"# HELP streamkernel_input_importance (.*)", text)
        assert "the 20 most important inputs only" in explained

    def test_an_input_that_has_lost_its_place_is_gone(self) -> None:
        model = SimpleNamespace(n_features=1, n_ignored_inputs=0, expert_weights={"a": 1.0}, feature_importances_={})
        model.feature_importances_ = {f"old {i}": 0.05 for i in range(20)}
        exporter = Exporter(model, ["accuracy"], 10)  # type: ignore[arg-type]
        model.feature_importances_ |= {f"new {i}": 0.1 for i in range(19)}
        exporter.refresh(1, 1.0, 0.5, 0.5, {})
        with serving(registry=exporter.registry) as url:
            found = [name for name in values_of(get(f"{url}/metrics")[1]) if name.startswith("input_importance")]
        assert len(found) == 20
        assert sum("input=new" in name for name in found) == 19

    def test_ignored_inputs_are_counted(self) -> None:
        model = AdaptiveKernelClassifier(n_features=16, max_inputs=1, seed=1)
        exporter = Exporter(model, ["accuracy"], 10)
        with pytest.warns(RuntimeWarning, match="max_inputs"):
            model.advance([{"a": 1.0, "b": 2.0}] * 3, [True] * 3)
        exporter.refresh(3, 1.0, 0.5, 0.5, {})
        assert exporter.registry.get_sample_value("streamkernel_ignored_inputs_total") == model.n_ignored_inputs == 3

    @pytest.mark.parametrize("before", [[], ["river.preprocessing.StandardScaler"]], ids=["alone", "in a pipeline"])
    def test_the_daemon_shows_them(self, home: Home, launcher: Launcher, before: list[str]) -> None:
        write_stream(home.folder / "stream.csv", 400, bad=False)
        steps = [{"river.compose.Select": {"args": ["a", "b"]}}, *before] if before else []
        home.configure(
            source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
            model=[*steps, {"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
            metrics={"port": 0},
        )
        daemon = launcher.start(home, "run", "config.yaml")
        url = daemon.wait_for(r"serving metrics at (http://127\.0\.0\.1:\d+)/metrics")[1]
        daemon.wait_for("reading csv file")
        while (values := values_of(get(f"{url}/metrics")[1]))["lifetime_records"] < 400:
            time.sleep(0.05)
        page = get(f"{url}/")[1]
        daemon.signal(signal.SIGTERM)
        assert daemon.wait().returncode == 0
        model = home.header()["model"]
        assert model["expert_weights"]
        for expert, weight in model["expert_weights"].items():
            assert values[f"expert_weight{{expert={expert}}}"] == weight
            assert f"<tr><th>expert: {expert}</th><td>{weight:.1%}</td></tr>" in page
        assert {"a", "b"} <= set(model["input_importance"])
        for name, share in model["input_importance"].items():
            assert values[f"input_importance{{input={name}}}"] == share
            assert f"<tr><th>input: {name}</th><td>{share:.1%}</td></tr>" in page
        table = launcher.call(home, "inspect", "out/state").stdout
        assert re.search(r"model: expert_weights: head, drift 0 +\d+\.\d%", table)
        assert re.search(r"model: input_importance: a +\d+\.\d%", table)


def test_the_page_shows_few_inputs_and_no_markup() -> None:
    inputs = {f"<b>{i}</b>": 0.1 for i in range(10)}
    page = status_page("config.yaml", "a file", View(experts={"trees": 1.0}, inputs=inputs))
    assert "<tr><th>expert: trees</th><td>100.0%</td></tr>" in page
    assert re.findall(r"<th>input: (.*?)</th>", page) == [f"&lt;b&gt;{i}&lt;/b&gt;" for i in range(5)]


@pytest.mark.parametrize("kind", ["growing", "adaptive", "adaptive, fresh", "River's"])
def test_promtool_finds_nothing_to_say(kind: str, promtool: str) -> None:
    models: dict[str, Callable[[], Any]] = {
        "growing": KernelClassifier,
        "adaptive": lambda: learnt(30),
        "adaptive, fresh": AdaptiveKernelClassifier,
        "River's": linear_model.LogisticRegression,
    }
    with serving(registry=Exporter(models[kind](), ["accuracy"], 1000).registry) as url:
        text = get(f"{url}/metrics")[1]
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


class TestServer:
    def test_it_is_not_ready_before_it_is(self) -> None:
        health = Health()
        with serving(health) as url:
            assert get(f"{url}/readyz") == (503, "not ready\n")
            health.ready = True
            assert get(f"{url}/readyz") == (200, "ready\n")
            health.obstacle = lambda: "no broker answers"
            assert get(f"{url}/readyz") == (503, "no broker answers\n")
            assert get(f"{url}/healthz") == (200, "ok\n")
            health.trouble = lambda: "the loop has not turned for 130 s"
            assert get(f"{url}/healthz") == (503, "the loop has not turned for 130 s\n")

    def test_it_listens_on_loopback_unless_told_otherwise(self) -> None:
        with serving() as url:
            assert url.startswith("http://127.0.0.1:")
        with serving(host="0.0.0.0") as url:
            port = url.rpartition(":")[2]
            assert get(f"http://127.0.0.1:{port}/healthz")[0] == 200

    def test_only_get_is_served(self) -> None:
        with serving() as url, pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{url}/metrics", data=b"x", timeout=30)
        with caught.value:
            assert caught.value.code == 405

    def test_a_name_and_a_password_are_asked_for(self) -> None:
        with serving(basic_auth={"username": "me", "password": "pässword:1"}) as url:
            for path in ("/", "/metrics", "/elsewhere"):
                assert get(url + path)[0] == 401
                assert get(url + path, "me:wrong")[0] == 401
                assert get(url + path, "you:pässword:1")[0] == 401
            assert get(f"{url}/metrics", "me:pässword:1")[0] == 200
            assert get(f"{url}/healthz")[0] == 200
            assert get(f"{url}/readyz")[0] == 503

    def test_tls(self) -> None:
        settings = {"certificate": str(TLS / "certificate.pem"), "key": str(TLS / "key.pem")}
        context = ssl.create_default_context(cafile=TLS / "certificate.pem")
        with serving(tls=settings) as url:
            assert url.startswith("https://")
            assert get(f"{url}/healthz", context=context) == (200, "ok\n")
            with pytest.raises(OSError, match=r"."):  # plain HTTP gets no answer
                urllib.request.urlopen(url.replace("https", "http") + "/healthz", timeout=30)
            assert get(f"{url}/healthz", context=context)[0] == 200

    def test_a_certificate_that_cannot_be_used_is_one_line(self) -> None:
        with pytest.raises(
            ServerError, match=r"metrics\.tls: nowhere\.pem and nothing\.pem cannot be used: No such file"
        ):
            Server(
                MetricsConfig(port=0, tls={"certificate": "nowhere.pem", "key": "nothing.pem"}),
                CollectorRegistry(),
                Health(),
            )

    def test_a_port_in_use_is_one_line(self, home: Home, launcher: Launcher) -> None:
        write_stream(home.folder / "stream.csv", 10)
        with serving() as url:
            port = int(url.rpartition(":")[2])
            home.configure(metrics={"port": port})
            ended = launcher.call(home, "run", "config.yaml")
        assert ended.returncode == 1
        (line,) = ended.stderr.splitlines()
        assert (
            f"cannot serve metrics on 127.0.0.1:{port}: Address already in use; set metrics.port to another one" in line
        )
        assert not (home.folder / "out/predictions.jsonl").exists()


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    return asked + variables


class TestDashboard:
    def test_every_name_it_asks_for_is_exported_and_every_exported_name_is_asked_for(self) -> None:
        join = LabelJoin("id", "y", 60.0, 10)
        models = (KernelClassifier(), AdaptiveKernelClassifier())
        exporters = [Exporter(model, ["accuracy"], 1000, join) for model in models]
        served = set()
        for family in itertools.chain(*(exporter.registry.collect() for exporter in exporters)):
            if family.type == "histogram":
                served |= {f"{family.name}_{part}" for part in ("bucket", "count", "sum")}
            else:
                served.add(family.name + ("_total" if family.type == "counter" else ""))
        asked = {name for text in expressions() for name in re.findall(r"\bstreamkernel_\w+", text)}
        assert asked <= served
        base = {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked} | asked
        missing = {
            name for name in served if re.sub(r"_(bucket|count|sum)$", "", name) not in base and name not in base
        }
        assert not missing

    def test_it_can_be_imported(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text())
        source = dashboard["templating"]["list"][0]
        assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
        numbers = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(numbers)) == len(numbers)
        for panel in dashboard["panels"]:
            assert panel["title"]
            assert panel["description"]
            for target in panel["targets"]:
                assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}

    def test_no_two_panels_overlap(self) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken
            assert place["x"] + place["w"] <= 24
            taken |= cells

    def test_the_counters_it_rates_are_there_before_they_count(self) -> None:
        with serving(registry=Exporter(KernelClassifier(), ["accuracy"], 1000).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        for name in ("feature_blocks_total{action=grown}", "records_dead_lettered_total{reason=refused}"):
            assert values[name] == 0


def test_rolling_metrics_of_a_regression(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, float]] = []
    refresh = Exporter.refresh
    monkeypatch.setattr(Exporter, "refresh", lambda self, *rest: (seen.append(dict(rest[-1])), refresh(self, *rest)))
    monkeypatch.chdir(home.folder)
    home.configure(
        source={"kind": "river", "dataset": "ChickWeights"},
        model=[{"streamkernel.KernelRegressor": {"seed": 1}}],
        metrics={"port": 0, "window": 100, "report": ["rmse", "r2"]},
    )
    run(prepare(home.config))
    assert set(seen[-1]) == {"rmse", "r2"}
    assert seen[-1]["rmse"] > 0
