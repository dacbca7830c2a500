// Charts as SVG, drawn in place: one line each, with a gap where the process made no points.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360;
const HEIGHT = 128;
const LEFT = 46;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
const HOUR = 3600;
const SHORTEST = 60;
const GAP_INTERVALS = 2.5;

function svg(tag, attributes, parent) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent?.append(made);
  return made;
}

/** Return at most four round numbers that span values. */
function ticks(low, high) {
  const rough = (high - low) / 3 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let at = Math.floor(low / step); at * step < high + step * 0.999; at += 1) found.push(at * step);
  return found;
}

/** Return the range of the axis: from 0 for what is counted, else close to the values. */
function span(values, fromZero) {
  const finite = values.filter(known);
  if (!finite.length) return [0, 1];
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  if (fromZero) [low, high] = [Math.min(0, low), high > 0 ? high : 1];
  if (low === high) [low, high] = [low - Math.abs(low) * 0.05 - 1e-9, high + Math.abs(high) * 0.05 + 1e-9];
  return [low, high];
}

class Chart {
  constructor(parent, title, color, fromZero, format) {
    this.title = title;
    this.fromZero = fromZero;
    this.format = format;
    this.figure = document.createElement("figure");
    this.figure.className = "chart";
    this.figure.dataset.color = color;
    const caption = document.createElement("figcaption");
    const name = document.createElement("span");
    name.textContent = title;
    this.value = document.createElement("strong");
    caption.append(name, this.value);
    this.svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot" });
    this.grid = svg("g", { class: "grid" }, this.svg);
    this.labels = svg("g", { class: "labels" }, this.svg);
    this.area = svg("path", { class: "area" }, this.svg);
    this.line = svg("path", { class: "line" }, this.svg);
    this.dot = svg("circle", { class: "dot", r: 3.2 }, this.svg);
    this.figure.append(caption, this.svg);
    parent.append(this.figure);
  }

  /** Draw a series up to now; its last value stands beside the title. */
  draw(times, values, now, interval) {
    const latest = values[values.length - 1];
    const first = times.length ? times[0] : now;
    const long = Math.min(HOUR, Math.max(SHORTEST, now - first));
    const start = now - long;
    const [low, high] = span(values, this.fromZero);
    const marks = ticks(low, high);
    const [bottom, top] = [marks[0], marks[marks.length - 1]];
    const x = (time) => LEFT + ((time - start) / long) * (WIDTH - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - ((value - bottom) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
    const runs = [];
    let run = [];
    let before = -Infinity;
    times.forEach((time, place) => {
      if (time < start - interval || !known(values[place])) return;
      if (time - before > GAP_INTERVALS * interval) runs.push((run = []));
      run.push(`${Math.max(LEFT, x(time)).toFixed(1)} ${y(values[place]).toFixed(1)}`);
      before = time;
    });
    this.line.setAttribute("d", runs.map((points) => `M${points.join("L")}${points.length > 1 ? "" : "h.1"}`).join(""));
    this.area.setAttribute("d", runs.map((points) => closed(points)).join(""));
    this.mark(x, y, times, values);
    this.axes(marks, y, long);
    this.value.textContent = this.format(latest);
    this.svg.setAttribute("aria-label", this.spoken(latest, values, long));
  }

  mark(x, y, times, values) {
    const last = values.length - 1;
    const shown = last >= 0 && known(values[last]);
    this.dot.toggleAttribute("hidden", !shown);
    this.dot.setAttribute("visibility", shown ? "visible" : "hidden");
    if (!shown) return;
    this.dot.setAttribute("cx", x(times[last]).toFixed(1));
    this.dot.setAttribute("cy", y(values[last]).toFixed(1));
  }

  axes(marks, y, long) {
    const key = [...marks, Math.round(long / 5)].join(" ");
    if (key === this.key) return;
    this.key = key;
    this.grid.replaceChildren();
    this.labels.replaceChildren();
    for (const mark of marks) {
      const at = y(mark).toFixed(1);
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }, this.grid);
      svg("text", { x: LEFT - 6, y: Number(at) + 4, "text-anchor": "end" }, this.labels).textContent = short(
        Number(mark.toPrecision(6)),
      );
    }
    const ago = long < 120 ? `${Math.round(long / 5) * 5} s ago` : `${Math.round(long / 60)} min ago`;
    svg("text", { x: LEFT, y: HEIGHT - 5 }, this.labels).textContent = ago;
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, this.labels).textContent = "now";
  }

  spoken(latest, values, long) {
    const finite = values.filter(known);
    if (!finite.length) return `${this.title}: nothing is known yet`;
    const [low, high] = [Math.min(...finite), Math.max(...finite)].map(this.format);
    return `${this.title}: now ${this.format(latest)}; between ${low} and ${high} in the last ${duration(long)}`;
  }
}

/** Return the path of an area from a line down to the axis. */
function closed(points) {
  if (points.length < 2) return "";
  const [first, last] = [points[0], points[points.length - 1]].map((point) => point.split(" ")[0]);
  return `M${first} ${HEIGHT - BOTTOM}L${points.join("L")}L${last} ${HEIGHT - BOTTOM}Z`;
}
