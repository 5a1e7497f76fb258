// One plot: an SVG of the width of its panel, with a cursor for pointer and keyboard, and its values as a table.

import { axis, clock, shown, times } from "./scale.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_ROWS = 15;

/** An element with attributes and children. */
export function element(name, attributes = {}, ...children) {
  const made = ["svg", "path", "text", "rect", "line", "circle", "g"].includes(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export class Plot {
  constructor(panel) {
    this.panel = panel; this.show = shown[panel.unit]; this.picked = null;
    this.svg = element("svg", { "aria-hidden": "true" });
    this.slider = element("div", { class: "plot " + (panel.wide ? "tall" : "low"), role: "slider", tabindex: "0", "aria-label": panel.title + ", by time; arrow keys move", "aria-valuemin": "0" }, this.svg);
    this.when = element("p", { class: "when" });
    this.legend = element("ul", { class: "legend" });
    this.values = panel.lines.map(([, label], i) => this.legendItem(label, i));
    this.table = element("details", {}, element("summary", {}, "As a table"), element("div", { class: "scroll" }));
    this.none = element("p", { class: "muted", hidden: "" }, panel.none ?? "");
    this.root = element("article", { class: "panel" + (panel.wide ? " wide" : ""), id: panel.id }, element("h3", {}, panel.title),
      element("p", { class: "muted" }, panel.note), this.none, this.slider, this.when, this.legend, this.table);
    this.listen();
  }

  legendItem(label, i) {
    const sign = this.panel.stacked ? element("rect", { class: "m" + (i + 1), x: 1, y: 1, width: 20, height: 10 }) : element("path", { class: "line s" + (i + 1), d: "M0 6h22" });
    const value = element("b");
    const item = element("li", {}, element("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, sign), label + " ", value);
    this.panel.stacked ? this.legend.prepend(item) : this.legend.append(item);
    return value;
  }

  listen() {
    this.slider.addEventListener("pointermove", event => {
      const box = this.svg.getBoundingClientRect(), { left, right, from, to } = this.frame ?? {};
      if (left === undefined) return;
      this.pick(this.points.nearest(from + (event.clientX - box.left - left) / (right - left) * (to - from)));
    });
    this.slider.addEventListener("pointerleave", () => this.pick(null));
    this.slider.addEventListener("blur", () => this.pick(null));
    this.slider.addEventListener("keydown", event => this.key(event));
    this.table.addEventListener("toggle", () => this.fillTable());
    new ResizeObserver(() => this.redraw()).observe(this.slider);
  }

  key(event) {
    const last = (this.points?.at.length ?? 0) - 1, here = this.index() ?? last;
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, PageUp: here - 20, PageDown: here + 20, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.pick(to === null ? null : Math.min(Math.max(to, 0), last));
  }

  /** The cursor stays at its time while points are added and dropped. */
  pick(index) {
    this.picked = index === null || index < 0 ? null : this.points?.at[index] ?? null;
    this.redraw();
  }

  index() {
    const index = this.picked === null ? -1 : this.points.at.indexOf(this.picked);
    return index < 0 ? null : index;
  }

  draw(points, view, now_s) {
    [this.points, this.view, this.now] = [points, view, now_s];
    const empty = this.panel.none !== undefined && points.at.length > 0 && !this.panel.lines.some(([key]) => points.column(key).some(v => v !== null));
    this.root.hidden = empty && !this.panel.none;
    this.none.hidden = !empty;
    for (const part of [this.slider, this.when, this.legend, this.table]) part.hidden = empty;
    this.redraw();
    if (this.table.open) this.fillTable();
  }

  redraw() {
    const width = this.slider.clientWidth, height = this.slider.clientHeight;
    if (!this.points || width < 60 || this.slider.hidden) return;
    const columns = this.panel.lines.map(([key]) => this.points.column(key));
    const [from, to] = this.points.range(this.now), scale = axis(this.panel.unit, this.most(columns), this.panel.end?.(this.view));
    const widest = Math.max(...scale.ticks.map(([, label]) => label.length));
    this.frame = { left: widest * 6.8 + 8, right: width - 6, top: 10, bottom: height - 22, from, to };
    this.scale = scale;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...this.axes(), ...(this.panel.stacked ? this.areas(columns) : this.paths(columns)), ...this.cursor());
    this.describe(columns);
  }

  most(columns) {
    return columns.flat().reduce((most, v) => v > most ? v : most, 0);
  }

  x(time) { const f = this.frame; return f.left + (time - f.from) / (f.to - f.from) * (f.right - f.left); }
  y(value) { const f = this.frame; return f.bottom - Math.min(value / this.scale.high, 1) * (f.bottom - f.top); }

  axes() {
    const { left, right, bottom, from, to } = this.frame, parts = [];
    for (const [value, label] of this.scale.ticks) {
      const y = this.y(value).toFixed(1);
      parts.push(element("path", { class: value ? "grid" : "axis", d: `M${left} ${y}H${right}` }));
      parts.push(element("text", { x: left - 6, y: +y + 4, "text-anchor": "end" }, label));
    }
    for (const [at, label] of times(from, to, (right - left) / 90)) {
      const x = this.x(at);
      if (x > right - 12) continue;
      parts.push(element("path", { class: "axis", d: `M${x.toFixed(1)} ${bottom}v4` }));
      parts.push(element("text", { x: Math.max(x, left + 14).toFixed(1), y: bottom + 17, "text-anchor": "middle" }, label));
    }
    return parts;
  }

  paths(columns) {
    return columns.map((column, i) => {
      const stretches = this.points.stretches(j => column[j] !== null && this.points.at[j] >= this.frame.from);
      const d = stretches.map(s => "M" + s.map(j => `${this.x(this.points.at[j]).toFixed(1)} ${this.y(column[j]).toFixed(1)}`).join("L") + (s.length === 1 ? "h.1" : "")).join("");
      return element("path", { class: "line s" + (i + 1), d, "data-key": this.panel.lines[i][0] });
    });
  }

  /** Stacks each line on the sum of those before it. */
  areas(columns) {
    const stretches = this.points.stretches(j => columns.some(c => c[j] !== null) && this.points.at[j] >= this.frame.from);
    const below = this.points.at.map(() => 0);
    return columns.map((column, i) => {
      const base = [...below];
      column.forEach((v, j) => below[j] += v ?? 0);
      const at = (j, sums) => `${this.x(this.points.at[j]).toFixed(1)} ${this.y(sums[j]).toFixed(1)}`;
      const d = stretches.map(s => "M" + s.map(j => at(j, below)).join("L") + "L" + [...s].reverse().map(j => at(j, base)).join("L") + "Z").join("");
      return element("path", { class: "area m" + (i + 1), d, "data-key": this.panel.lines[i][0] });
    });
  }

  cursor() {
    const index = this.index();
    if (index === null) return [];
    const x = this.x(this.points.at[index]).toFixed(1);
    return [element("path", { class: "cursor", d: `M${x} ${this.frame.top}V${this.frame.bottom}` })];
  }

  /** Values at the cursor, or the newest. */
  describe(columns) {
    const picked = this.index(), index = picked ?? this.points.at.length - 1;
    const values = columns.map(c => c[index] === null || c[index] === undefined ? "–" : this.show(c[index]));
    values.forEach((text, i) => put(this.values[i], text));
    const at = index < 0 ? "" : clock(this.points.at[index], true);
    put(this.when, picked === null ? "" : "at " + at);
    this.slider.setAttribute("aria-valuemax", String(Math.max(this.points.at.length - 1, 0)));
    this.slider.setAttribute("aria-valuenow", String(Math.max(index, 0)));
    this.slider.setAttribute("aria-valuetext", at + ": " + this.panel.lines.map(([, label], i) => `${label} ${values[i]}`).join(", "));
  }

  /** The values as a table, thinned to a readable length. */
  fillTable() {
    if (!this.table.open || !this.points) return;
    const every = Math.max(1, Math.ceil(this.points.at.length / MOST_ROWS)), columns = this.panel.lines.map(([key]) => this.points.column(key));
    const head = element("tr", {}, element("th", { scope: "col" }, "time"), ...this.panel.lines.map(([, label]) => element("th", { scope: "col" }, label)));
    const rows = [];
    for (let j = this.points.at.length - 1; j >= 0; j -= every) {
      const cells = columns.map(c => element("td", {}, c[j] === null ? "–" : this.show(c[j])));
      rows.push(element("tr", {}, element("th", { scope: "row" }, clock(this.points.at[j], true)), ...cells));
    }
    const table = element("table", {}, element("caption", { class: "hidden" }, this.panel.title), element("thead", {}, head), element("tbody", {}, ...rows));
    this.table.lastElementChild.replaceChildren(table);
  }
}
