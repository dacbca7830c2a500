// Texts and numbers for people. What comes from records is only ever a text node.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udc7f]/g;
const LONGEST = 300;
const NONE = "–";

/** A text in which nothing is hidden: what does not show, or turns the direction, as an escape; cut where it is long. */
function visible(text, longest = LONGEST) {
  const shown = String(text);
  const cut = shown.length > longest ? `${shown.slice(0, longest)}…` : shown;
  return cut.replace(HIDDEN, (found) => [...found].map(escaped).join(""));
}

function escaped(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

const known = (value) => typeof value === "number" && Number.isFinite(value);
const whole = (value) => (known(value) ? Math.round(value).toLocaleString("en") : NONE);

/** A number in four significant digits, or with a power of ten. */
function number(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(2);
  if (size >= 1000) return whole(value);
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 7 });
}

const share = (value) => (known(value) ? `${(100 * value).toFixed(1)}%` : NONE);

/** A number with a unit for large ones. */
function short(value) {
  if (!known(value)) return NONE;
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= size) return `${Number((value / (unit === "k" ? 1e3 : size)).toPrecision(3))}${unit}`;
  }
  return number(value);
}

function bytes(value) {
  if (!known(value)) return NONE;
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${whole(value)} bytes`;
}

/** A duration in its two largest units. */
function duration(seconds) {
  if (!known(seconds)) return NONE;
  const left = Math.max(0, Math.floor(seconds));
  if (left < 60) return `${left} s`;
  if (left < 3600) return `${Math.floor(left / 60)} min ${left % 60} s`;
  if (left < 86400) return `${Math.floor(left / 3600)} h ${Math.floor((left % 3600) / 60)} min`;
  return `${Math.floor(left / 86400)} d ${Math.floor((left % 86400) / 3600)} h`;
}

function seconds(value) {
  if (!known(value)) return NONE;
  if (value >= 1) return `${number(Number(value.toPrecision(3)))} s`;
  return value >= 1e-3 ? `${(value * 1e3).toPrecision(3)} ms` : `${(value * 1e6).toPrecision(3)} µs`;
}

const clock = (time) => new Date(time * 1000).toLocaleTimeString("en-GB");
const named = (name) => visible(name.replaceAll("_", " "), 60);
