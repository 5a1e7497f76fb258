// Disk latency: a histogram for each kind of request, of recent ones and since the measurement began.

import { command, paragraph, table } from "./plan.js";
import { element } from "./plot.js";
import { axis, time } from "./scale.js";

const NAMES = { read: "Reads", write: "Writes", discard: "Discards", flush: "Flushes" };
const FEWEST_BUCKETS = 6;

/** A quantile in nanoseconds, interpolated within its bucket, which ends at twice its beginning. */
export function quantile(buckets, share) {
  let rank = share * buckets.reduce((sum, [, count]) => sum + count, 0);
  for (const [from, count] of buckets) {
    if (count >= rank) return from + from * Math.max(rank, 0) / count;
    rank -= count;
  }
  return null;
}

/** The range of all kinds in powers of two, so that their axes are equal. */
export function ends(latencies) {
  const powers = latencies.flatMap(l => [...l.all.buckets, ...l.late.buckets].map(([from]) => Math.round(Math.log2(from))));
  if (!powers.length) return null;
  const low = Math.min(...powers), high = Math.max(...powers) + 1;
  return [low, Math.max(high, low + FEWEST_BUCKETS)];
}

/** The count in words. */
function words(histogram, when) {
  const { count, sum_ns, buckets } = histogram;
  if (!count) return `None ${when}.`;
  if (!buckets.length) return `${count} ${when}, ${time(sum_ns / count)} on average.`;
  return `${count} ${when}: half within ${time(quantile(buckets, 0.5))}, 99 of 100 within ${time(quantile(buckets, 0.99))}.`;
}

class Kind {
  constructor(operation) {
    this.svg = element("svg", { "aria-hidden": "true" });
    this.plot = element("div", { class: "plot low" }, this.svg);
    this.late = element("p"); this.all = element("p", { class: "muted" });
    this.place = element("div");
    this.table = element("details", {}, element("summary", {}, "As a table"), this.place);
    this.root = element("article", { class: "panel" }, element("h3", {}, NAMES[operation] ?? operation), this.late, this.all, this.plot, this.table);
    this.table.addEventListener("toggle", () => this.fillTable());
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  show(kind, of_late, ends) {
    [this.kind, this.of_late, this.ends] = [kind, of_late, ends];
    this.late.textContent = words(kind.late, of_late);
    this.all.textContent = words(kind.all, "since eke-io began");
    this.plot.hidden = this.table.hidden = !kind.all.buckets.length;
    this.draw();
    this.fillTable();
  }

  /** The share of each bucket, in percent. */
  shares(histogram) {
    const [low, high] = this.ends, shares = Array(high - low).fill(0);
    const all = histogram.buckets.reduce((sum, [, count]) => sum + count, 0);
    for (const [from, count] of histogram.buckets) shares[Math.round(Math.log2(from)) - low] = 100 * count / all;
    return shares;
  }

  draw() {
    const width = this.plot.clientWidth, height = this.plot.clientHeight;
    if (!this.ends || width < 60 || this.plot.hidden) return;
    const late = this.shares(this.kind.late), all = this.shares(this.kind.all);
    this.scale = axis("percent", Math.max(...late, ...all));
    this.frame = { left: 46, right: width - 16, top: 8, bottom: height - 22 };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...this.axes(), ...this.bars(late), this.outline(all));
  }

  x(power) { const [low, high] = this.ends, f = this.frame; return f.left + (power - low) / (high - low) * (f.right - f.left); }
  y(share) { const f = this.frame; return f.bottom - share / this.scale.high * (f.bottom - f.top); }

  axes() {
    const { left, right, top, bottom } = this.frame, [low, high] = this.ends, parts = [];
    for (const [value, label] of this.scale.ticks) {
      const y = this.y(value).toFixed(1);
      parts.push(element("path", { class: value ? "grid" : "axis", d: `M${left} ${y}H${right}` }), element("text", { x: left - 6, y: +y + 4, "text-anchor": "end" }, label));
    }
    for (let ten = Math.ceil(Math.log10(2 ** low) - 1e-9); 10 ** ten <= 2 ** high; ten++) {
      const x = this.x(Math.log2(10 ** ten)).toFixed(1);
      parts.push(element("path", { class: "axis", d: `M${x} ${bottom}v4` }), element("path", { class: "grid", d: `M${x} ${top}V${bottom}` }));
      parts.push(element("text", { x, y: bottom + 17, "text-anchor": "middle" }, time(10 ** ten).replace(/\.0+ /, " ")));
    }
    return parts;
  }

  bars(shares) {
    const at = i => this.x(this.ends[0] + i);
    return shares.map((share, i) => share && element("rect", {
      class: "m1", x: (at(i) + 1).toFixed(1), width: Math.max(at(i + 1) - at(i) - 2, 1).toFixed(1),
      y: Math.min(this.y(share), this.frame.bottom - 2).toFixed(1), height: Math.max(this.frame.bottom - this.y(share), 2).toFixed(1),
    })).filter(Boolean);
  }

  /** A step line over the buckets. */
  outline(shares) {
    const steps = shares.map((share, i) => `V${this.y(share).toFixed(1)}H${this.x(this.ends[0] + i + 1).toFixed(1)}`);
    return element("path", { class: "line s2", d: `M${this.frame.left} ${this.frame.bottom}${steps.join("")}V${this.frame.bottom}` });
  }

  fillTable() {
    if (!this.table.open || !this.ends) return;
    const [all, late] = [this.kind.all, this.kind.late].map(h => new Map(h.buckets));
    const rows = [...all.keys()].map(from => [`${time(from)} to ${time(2 * from)}`, late.get(from) ?? 0, all.get(from)].map(String));
    this.place.replaceChildren(table(["", this.of_late, "since eke-io began"], rows));
  }
}

/** Why there is no measurement, and what to do; `null` if there is one. */
export function why(snapshot) {
  const { agent, agent_silent: silent, io } = snapshot;
  if (!io) {
    const who = agent ? "eke-io does not run." : `eke-io runs beside the agent, which ${silent ? "does not answer" : "is not running"}.`;
    return [`Not measured: ${who} It also throttles writers while reads wait too long, so by default it runs where disks are slow. To start it here:`, "sudo eke up --govern-io", "For a while, in a terminal:", "sudo eke io watch"];
  }
  return io.latencies?.length ? null : ["No disk was used since eke-io began to measure."];
}

/** The section: panels by kind, or why there are none. */
export class Disks {
  constructor(root) {
    this.kinds = new Map(); this.shown = "";
    this.note = element("p", { class: "muted" });
    this.legend = element("ul", { class: "legend" }, ...[
      [element("rect", { class: "m1", x: 1, y: 1, width: 20, height: 10 }), "of late"],
      [element("path", { class: "line s2", d: "M0 6h22" }), "since eke-io began"],
    ].map(([sign, text]) => element("li", {}, element("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, sign), text)));
    this.none = element("div", { class: "panel" }); this.grid = element("div", { class: "pair" });
    root.append(this.none, this.note, this.legend, this.grid);
  }

  show(snapshot) {
    const none = why(snapshot), io = snapshot.io;
    this.none.hidden = !none;
    for (const part of [this.note, this.legend, this.grid]) part.hidden = !!none;
    if (none) return this.explain(none);
    const between = ends(io.latencies), of_late = `in the last ${Math.max(1, Math.round(io.late_ms / 1000))} s`;
    this.legend.hidden = !between;
    this.note.textContent = between
      ? "From the submission of a request to its completion, over all disks. A bar is the share of requests in that range of time; the scale is logarithmic."
      : "Averages only: eke-io cannot use BPF here, and the kernel's counters have no more (sudo eke io watch shows why).";
    for (const kind of io.latencies) this.of(kind.operation).show(kind, of_late, between);
    for (const [name, kind] of this.kinds) kind.root.hidden = !io.latencies.some(l => l.operation === name);
  }

  of(operation) {
    if (!this.kinds.has(operation)) {
      this.kinds.set(operation, new Kind(operation));
      this.grid.append(this.kinds.get(operation).root);
    }
    return this.kinds.get(operation);
  }

  explain(lines) {
    if (this.shown === lines.join()) return;
    this.shown = lines.join();
    this.none.replaceChildren(...lines.map((line, i) => i % 2 ? command(line) : paragraph(line, "")));
  }
}
