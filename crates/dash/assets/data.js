// The server's answers, and the points of the shown span.

/** A short history is drawn as if it had this number of points. */
const FEWEST = 60;

/** Points by column, in order of time, no more than the span keeps. */
export class Points {
  constructor(span) {
    this.span = span; this.step = 1; this.keep = 300; this.keys = []; this.at = []; this.rows = [];
  }

  /** Adds new points. If the clock was set back, it starts over. */
  take(points) {
    if (points.span !== this.span) return;
    if (points.last_s > 0 && points.last_s < this.last) [this.at, this.rows] = [[], []];
    [this.step, this.keep, this.keys] = [points.step_s, points.keep_s, points.keys];
    this.at.push(...points.at); this.rows.push(...points.rows);
    const from = (this.at.at(-1) ?? 0) - this.keep, old = this.at.findIndex(at => at >= from);
    if (old > 0) { this.at.splice(0, old); this.rows.splice(0, old); }
  }

  get last() { return this.at.at(-1) ?? 0; }

  /** The ends of the shown time: up to now, or to the last point if the browser's clock differs. */
  range(now_s) {
    const to = this.at.length && Math.abs(now_s - this.last) > 2 * this.step + 30 ? this.last : now_s;
    const first = this.at[0] ?? to;
    return [Math.max(to - this.keep, Math.min(first, to - FEWEST * this.step)), to];
  }

  /** The values of a column; null if there is none. */
  column(key) {
    const i = this.keys.indexOf(key);
    return i < 0 ? [] : this.rows.map(row => row[i]);
  }

  /** Stretches of indices without a gap in time for which `has` holds. */
  stretches(has) {
    const stretches = [];
    let open = null;
    this.at.forEach((at, i) => {
      if (!has(i)) { open = null; return; }
      if (!open || at - this.at[i - 1] > 6 + 2.5 * this.step) stretches.push(open = []);
      open.push(i);
    });
    return stretches;
  }

  /** The index of the point next to a time, or -1. */
  nearest(time) {
    let best = -1;
    this.at.forEach((at, i) => { if (best < 0 || Math.abs(at - time) < Math.abs(this.at[best] - time)) best = i; });
    return best;
  }
}

/** Sends one request; returns the answer or an error. */
export async function ask(points) {
  const stop = AbortSignal.timeout(8000);
  const response = await fetch(`/now?span=${points.span}&after=${points.last}`, { signal: stop, cache: "no-store" });
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}
