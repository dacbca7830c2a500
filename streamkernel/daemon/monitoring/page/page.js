// The page: asks for the status every two seconds, and draws what changed.

const PAUSE_MS = 2000;
const PATIENCE_MS = 10000;
const STALE_SECONDS = 10;
const HOUR_SECONDS = 3600;
const DOCS = "https://streamkernel.github.io/streamkernel/how-to/status-page.html";

// Without a name and a password, which the address may have and no request may.
const here = new URL(location.pathname, location.origin);
const partition = new URLSearchParams(location.search).get("partition");
const colors = ["green", "orange", "purple", "vermillion", "sky"];

const tiles = new Tiles(byId("tiles"));
const charts = new Map();
const partitions = new Table(byId("partitions-table"), "Partitions of this member", [
  ["partition", "link"], ["state", "text"], ["records", "number"], ["records/s", "number"], ["loss", "number"],
  ["metric", "number"], ["features", "number"], ["lag", "number"], ["dead letters", "number"], ["saved up to", "number"],
  ["process", "number"],
], "cards");
const models = new Table(byId("models"), "Models side by side", [
  ["model", "text"], ["state", "text"], ["events", "number"], ["refused", "number"], ["loss", "number"],
  ["metric", "number"], ["features", "number"], ["time", "number"],
], "cards");
const pairs = [["", "text"], ["", "number"]];
const growth = new Table(byId("growth"), "Growth and change", pairs);
const experts = new Bars(byId("experts"), "Weights of the experts", "expert", "blue", `${DOCS}#the-experts`);
const inputs = new Bars(byId("inputs"), "Importance of the inputs", "input", "green");
const account = new Table(byId("account"), "Records since the first start", pairs);
const labels = new Table(byId("labels"), "Late labels", pairs);
const loop = new Bars(byId("loop"), "Time of the loop", "activity", "orange");
const checkpoints = new Table(byId("checkpoints"), "Checkpoints", pairs);
const positions = new Table(byId("positions"), "Positions", [["of", "text"], ["partition", "number"], ["offset", "number"]]);
const lag = new Table(byId("lag"), "Records still to come", [["topic", "text"], ["partition", "number"], ["records", "number"]]);
const letters = new Table(byId("letters-table"), "The last dead letters, the latest first", [
  ["time", "time"], ["reason", "text"], ["detail", "text"], ["position", "text"], ["record", "code"],
], "cards letters");

let times = [];
let series = new Map();
let started = 0;
let failing = 0;
let timer = 0;

/** Add the new points to those that are there, of the same process, and drop what is older than an hour. */
function remember(status) {
  if (status.started !== started) {
    [times, series, started] = [[], new Map(), status.started];
  }
  const added = Object.entries(status.history.series);
  for (const [name, values] of added) {
    const before = series.get(name) ?? new Array(times.length).fill(null);
    series.set(name, before.concat(values));
  }
  times = times.concat(status.history.time);
  const old = times.findIndex((time) => time >= status.now - HOUR_SECONDS);
  if (old > 0) {
    times = times.slice(old);
    for (const [name, values] of series) series.set(name, values.slice(old));
  }
}

/** The rolling metrics, but for the log-loss: the progressive loss is the one loss of the page. */
function rolling(figures) {
  return Object.entries(figures.rolling ?? {}).filter(([name]) => name !== "log_loss");
}

function total(status) {
  return status.lag.length ? status.lag.reduce((sum, one) => sum + one.records, 0) : null;
}

function drawTiles(status) {
  const { figures, checkpoint } = status;
  const left = total(status);
  const of = figures.account ?? {};
  tiles.draw([
    ["Records", whole(of.consumed), figures.records === of.consumed ? "" : `${whole(figures.records)} by this process`],
    ["Records/s", short(status.rate), "over the last seconds"],
    ["Progressive loss", number(figures.progressive_loss), "before learning"],
    ...rolling(figures).map(([name, value]) => [`Rolling ${named(name)}`, number(value)]),
    ...(known(status.calibration_error) ? [["Calibration error", number(status.calibration_error)]] : []),
    ...(known(status.interval_coverage) ? [["Interval coverage", share(status.interval_coverage), "of 90%"]] : []),
    ...(known(figures.features) ? [["Features", whole(figures.features)]] : []),
    ...(left === null ? [] : [["Lag", short(left), "records to come"]]),
    ...(known(status.slowest_record) ? [["Slowest record", seconds(status.slowest_record)]] : []),
    ["Dead letters", whole(of.dead)],
    ["Checkpoint", checkpoint === null ? "off" : known(checkpoint.time) ? age(status, checkpoint.time) : "none yet"],
    ["Uptime", duration(status.now - status.started)],
  ]);
}

const age = (status, time) => `${duration(status.now - time)} ago`;

function drawCharts(status) {
  const { figures, history } = status;
  const wanted = [
    ["loss", "Progressive loss", "blue", false, number, figures.progressive_loss],
    ...rolling(figures).map(([name, value], place) => [
      `rolling_${name}`, `Rolling ${named(name)}`, colors[place % colors.length], false, number, value,
    ]),
    ["features", "Features", "purple", true, whole, figures.features],
    ["rate", "Records/s", "sky", true, short, status.rate],
    ["lag", "Lag", "vermillion", true, short, total(status)],
  ];
  for (const [name, title, color, fromZero, format, latest] of wanted) {
    const values = series.get(name) ?? [];
    if (!charts.has(name)) {
      if (!values.some(known)) continue;
      charts.set(name, new Chart(byId("charts"), title, color, fromZero, format));
    }
    // The line ends at the number beside its title; the history has a point each five seconds only.
    charts.get(name).draw([...times, status.snapshot], [...values, latest], status.now, history.interval);
  }
  byId("history").hidden = !charts.size;
}

const GROWTH = {
  features: "features", blocks: "blocks", grown: "blocks grown", reused: "blocks reused", refits: "refits",
  window: "records in the window", drifts: "drifts detected", metric_relearnings: "metrics relearned",
};

function drawModel(status) {
  const { figures } = status;
  const found = Object.entries(GROWTH)
    .filter(([key]) => known(figures[key]))
    .map(([key, title]) => [title, whole(figures[key])]);
  if (known(status.check_margin)) found.push(["margin of the check", number(status.check_margin)]);
  growth.draw(found);
  experts.draw(Object.entries(figures.expert_weights ?? {}), 10);
  inputs.draw(Object.entries(figures.input_importance ?? {}), 10);
  const several = Object.entries(figures.models ?? {});
  models.draw(several.map(([name, one]) => [
    visible(name, 64),
    { text: one.disabled ? "disabled" : one.published ? "published" : "challenger", title: visible(one.disabled) },
    whole(one.shown), whole(one.refused), number(one.loss), metric(one.rolling), whole(one.growth?.features),
    seconds(one.seconds),
  ]));
  byId("model").hidden = !(found.length || several.length || figures.expert_weights || figures.input_importance);
}

function metric(figures) {
  const [first] = Object.entries(figures ?? {});
  return first ? `${named(first[0])} ${number(first[1])}` : NONE;
}

function drawStream(status) {
  const { figures, checkpoint } = status;
  account.draw(Object.entries(figures.account ?? {}).map(([name, count]) => [named(name), whole(count)]));
  labels.draw(Object.entries(figures.labels ?? {}).map(([name, count]) => [named(name), whole(count)]));
  const spent = Object.entries(status.loop_seconds ?? {});
  const all = spent.reduce((sum, [, value]) => sum + value, 0);
  loop.draw(spent.map(([name, value]) => [name, all > 0 ? value / all : 0]));
  checkpoints.draw(checkpoint === null ? [] : [
    ["last", checkpoint.name ? visible(checkpoint.name, 60) : known(checkpoint.time) ? "of the process before" : "none yet"],
    ["age", known(checkpoint.time) ? duration(status.now - checkpoint.time) : NONE],
    ["size", bytes(checkpoint.bytes)], ["took", seconds(checkpoint.seconds)], ["failures", whole(checkpoint.failures)],
    ["next", next(checkpoint)],
  ]);
  const places = [...status.positions].sort((one, other) => one.partition - other.partition);
  positions.draw(places.map((one) => [named(one.of), whole(one.partition), whole(one.offset)]), 50);
  const behind = [...status.lag].sort((one, other) => other.records - one.records);
  lag.draw(behind.map((one) => [visible(one.topic, 80), whole(one.partition), whole(one.records)]), 50);
  byId("stream").hidden = false;
}

function next(checkpoint) {
  if (!known(checkpoint.next_records)) return "nothing new to save";
  return `in ${whole(checkpoint.next_records)} records or ${duration(checkpoint.next_seconds)}`;
}

function drawLetters(status) {
  letters.draw(status.dead_letters.map((one) => [
    clock(one.time), visible(one.reason, 60), visible(one.detail, 500), place(one.position),
    one.raw === undefined ? "not shown" : visible(one.raw, one.raw.length) + (one.raw_chars > one.raw.length ? "…" : ""),
  ]));
  byId("letters").hidden = !status.dead_letters.length;
}

function place(position) {
  const of = position.source ? `${position.source}, ` : "";
  return `${visible(of, 40)}offset ${whole(position.offset)}${position.partition ? ` of ${position.partition}` : ""}`;
}

function drawMember(status) {
  const shown = status.partitions.map((one) => [one, one.status]);
  const sum = (of) => shown.reduce((before, [, child]) => before + ((child && of(child)) || 0), 0);
  tiles.draw([
    ["Partitions held", whole(status.held.length)],
    ["Records", whole(sum((child) => child.figures.account?.consumed))],
    ["Records/s", short(sum((child) => child.rate))],
    ...(shown.some(([, child]) => child?.lag.length) ? [["Lag", short(sum(total)), "records to come"]] : []),
    ["Dead letters", whole(sum((child) => child.figures.account?.dead))],
    ["Uptime", duration(status.now - status.started)],
  ]);
  partitions.draw(shown.map(([one, child]) => [
    { text: String(one.partition), href: `?partition=${one.partition}` },
    stateOf(one), whole(child?.figures.account?.consumed), short(child?.rate), number(child?.figures.progressive_loss),
    metric(child?.figures.rolling), whole(child?.figures.features), child ? whole(total(child)) : NONE,
    whole(child?.figures.account?.dead), whole(one.saved), one.pid === null ? NONE : String(one.pid),
  ]));
  byId("partitions").hidden = false;
}

function stateOf(one) {
  if (one.problem !== null) return visible(`${one.process}: ${one.problem}`, 200);
  const state = one.status?.state;
  const wrong = state && (state.name === "trouble" || state.name === "obstacle");
  return visible(wrong ? `${state.name}: ${state.detail}` : one.process, 200);
}

function drawHead(status) {
  const name = visible(status.configuration, 120);
  document.title = `${name}: ${status.state.name} · streamkernel`;
  put(byId("configuration"), partition === null ? name : `${name}, partition ${visible(partition, 12)}`);
  byId("up").hidden = partition === null;
  put(byId("brand"), `streamkernel ${visible(status.streamkernel, 40)}${status.mode === "predict" ? " · predicting" : ""}`);
  const both = [status.source, status.labels_source].filter(Boolean).map((one) => visible(one, 300));
  put(byId("source"), both.join("; labels: "));
  put(byId("state"), status.state.name);
  byId("state").dataset.state = status.state.name;
  const old = status.snapshot === undefined ? 0 : status.now - status.snapshot;
  const stale = old > STALE_SECONDS ? `The figures are ${duration(old)} old: the loop is at work on something long. ` : "";
  const detail = stale + (status.state.detail ? visible(status.state.detail, 500) : "");
  put(byId("detail"), detail);
  byId("detail").hidden = !detail;
}

function draw(status) {
  drawHead(status);
  if (status.kind === "member") {
    drawMember(status);
    return;
  }
  remember(status);
  drawTiles(status);
  drawCharts(status);
  drawModel(status);
  drawStream(status);
  drawLetters(status);
}

async function answer() {
  const url = new URL("api/status", here);
  if (times.length) url.searchParams.set("since", String(times[times.length - 1]));
  if (partition !== null) url.searchParams.set("partition", partition);
  const given = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" });
  if (given.ok) return given.json();
  throw new Error(`the answer is ${given.status}: ${visible((await given.text()).trim(), 200)}`);
}

async function poll() {
  clearTimeout(timer);
  try {
    draw(await answer());
    failing = 0;
    byId("connection").hidden = true;
  } catch (error) {
    failing ||= Date.now() / 1000;
    const why = error.name === "TypeError" ? "nothing answers" : visible(error.message, 300);
    put(byId("connection"), `No figures since ${clock(failing)}: ${why}. Asking again every ${PAUSE_MS / 1000} seconds.`);
    byId("connection").hidden = false;
    byId("state").dataset.state = "unknown";
    put(byId("state"), "unknown");
  }
  if (!document.hidden) timer = setTimeout(poll, PAUSE_MS);
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : poll()));
poll();
