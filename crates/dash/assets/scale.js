// Round numbers for axes, and values as text.

const KIB = 1024, UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A step of 1, 2 or 5 times a power of ten, so that about `count` of them are `span`. */
export function roundStep(span, count) {
  const raw = Math.max(span, 1e-9) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
  return ([1, 2, 5].find(f => f * power >= raw * 0.999) ?? 10) * power;
}

/** The index of the best binary unit for a number of bytes. */
function unitOf(value) {
  let unit = 0;
  while (Math.abs(value) >= KIB && unit < UNITS.length - 1) { value /= KIB; unit++; }
  return unit;
}

const number = (value, digits) => value.toFixed(digits);

export function bytes(value) {
  const unit = unitOf(value), scaled = value / KIB ** unit;
  return number(scaled, unit > 0 && scaled < 10 ? 1 : 0) + " " + UNITS[unit];
}

/** Nanoseconds as on the terminal: three significant digits. */
export function time(ns) {
  const [value, unit] = ns < 1e3 ? [ns, "ns"] : ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return number(value, unit === "ns" || value >= 100 ? 0 : value >= 10 ? 1 : 2) + " " + unit;
}

const few = value => number(value, value > 0 && value < 10 ? 1 : 0);

/** A value as text, by the unit of its plot. */
export const shown = {
  bytes,
  bytesPerSecond: value => bytes(value) + "/s",
  percent: value => few(value) + " %",
  perSecond: value => few(value) + "/s",
  perMinute: value => few(value) + " a minute",
};

/** An axis from zero: its end, its ticks with labels. `fixed` is an end that is not a round number (RAM; an older agent does not send it). */
export function axis(unit, most, fixed) {
  const isBytes = unit === "bytes" || unit === "bytesPerSecond";
  const end = fixed || Math.max(most, isBytes ? KIB * KIB : unit === "percent" ? 5 : 10);
  const divisor = isBytes ? KIB ** unitOf(end) : 1;
  const step = roundStep(end / divisor, 5) * divisor;
  const high = fixed || Math.ceil(end / step - 1e-9) * step;
  const ticks = [];
  for (let value = 0; value <= high * 1.0001; value += step) ticks.push([value, label(unit, value, divisor, step)]);
  return { high, ticks };
}

function label(unit, value, divisor, step) {
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step / divisor) + 1e-9)));
  const text = number(value / divisor, digits);
  if (unit === "percent") return text + " %";
  if (divisor > 1 || unit.startsWith("bytes")) {
    return value === 0 ? "0" : text + " " + UNITS[Math.round(Math.log(divisor) / Math.log(KIB))] + (unit === "bytesPerSecond" ? "/s" : "");
  }
  return text;
}

const STEPS = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600];

/** Times between two, at round local times, about `count` of them. */
export function times(from, to, count) {
  const step = STEPS.find(s => s >= (to - from) / Math.max(count, 1)) ?? 43200;
  const offset = new Date(to * 1000).getTimezoneOffset() * 60;
  const ticks = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) ticks.push([at, clock(at, step < 60)]);
  return ticks;
}

/** A local time of day. */
export function clock(unix_s, seconds) {
  return new Date(unix_s * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
}
