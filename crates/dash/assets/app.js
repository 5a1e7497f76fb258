// The page: requests data each second and shows what changed.

import { ask, Points } from "./data.js";
import { Disks } from "./disks.js";
import { PANELS } from "./panels.js";
import { eventParts, journalParts, latencyParts, planParts } from "./plan.js";
import { Plot } from "./plot.js";
import { fillTiles, tiles, verdict, who } from "./words.js";

const EACH_MS = 1000, HIDDEN_MS = 10000, SLOWEST_MS = 5000;
const by = id => document.getElementById(id);
const put = (id, text) => { const node = by(id); if (node.textContent !== text) node.textContent = text; };

const plots = PANELS.map(panel => new Plot(panel));
by("grid").append(...plots.map(plot => plot.root));
const disks = new Disks(by("disks"));

let points = new Points("minutes"), view = null, failures = 0, timer = 0, request = 0;
const shownParts = new Map();

/** Rebuilds parts only if their content changed, so that focus and selection stay. */
function fill(id, of, make) {
  const text = JSON.stringify(of);
  if (shownParts.get(id) === text) return;
  shownParts.set(id, text);
  by(id).replaceChildren(...make());
}

function showState(state, text) {
  if (by("state").dataset.state !== state) by("state").dataset.state = state;
  put("state-text", text);
}

function banner(text) {
  by("banner").hidden = !text;
  put("banner", text);
}

function showView() {
  const [state, text] = who(view);
  showState(state, text);
  put("host", view.host || "this machine");
  const title = `eke: ${view.host || "this machine"}`;
  if (document.title !== title) document.title = title;
  put("verdict", verdict(view));
  fillTiles(by("tiles"), tiles(view));
  disks.show(view.snapshot);
  fill("plan", [view.applied, view.snapshot.model.effective_ratio?.toFixed(2)], () => planParts(view));
  fill("journal", view.journal, () => journalParts(view));
  fill("events", view.snapshot.events, () => eventParts(view));
  fill("notes", view.notes, () => view.notes.map(note => Object.assign(document.createElement("li"), { textContent: note })));
  by("latency").hidden = !view.latencies.some(l => l.p50_ns > 0);
  if (!by("latency").hidden) fill("latency-plot", [view.latencies, by("latency-plot").clientWidth], () => latencyParts(view.latencies, by("latency-plot").clientWidth || 320));
  put("about", `eke ${view.version}; this page changes nothing and asks nobody but this machine.`);
}

function showPlots() {
  if (!view) return;
  const now = Date.now() / 1000;
  plots.forEach(plot => plot.draw(points, view, now));
  leaveNoHole();
  const each = points.step < 60 ? `${points.step} s` : `${points.step / 60} minutes`;
  const none = points.at.length ? "" : ` There is none yet: the history begins with the first run of eke dash.`;
  put("plots-note", (points.span === "minutes" ? "Each second while this page is open." : `Each point is the mean of ${each}.`) + none);
}

/** Panels are in pairs; the last of an odd number has the full width. */
function leaveNoHole() {
  const seen = plots.filter(plot => !plot.panel.wide && !plot.root.hidden);
  seen.forEach((plot, i) => plot.root.classList.toggle("wide", seen.length % 2 === 1 && i === seen.length - 1));
}

async function refresh() {
  clearTimeout(timer);
  const mine = ++request, asked = points;
  try {
    const answer = await ask(asked);
    if (mine !== request) return;
    failures = 0;
    asked.take(answer.points);
    banner(answer.why ? `This machine cannot be read: ${answer.why}` : "");
    if (answer.view) { view = answer.view; showView(); }
    showPlots();
  } catch (error) {
    if (mine !== request) return;
    failures++;
    showState("gone", "No answer.");
    banner(`eke dash does not answer${error instanceof TypeError || error.name === "TimeoutError" ? "" : `: ${error.message}`}. The page shows the last answer. Start it again with: eke dash`);
  }
  timer = setTimeout(refresh, document.hidden ? HIDDEN_MS : Math.min(EACH_MS * (1 + failures), SLOWEST_MS));
}

by("spans").addEventListener("change", event => {
  points = new Points(event.target.value);
  refresh();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
addEventListener("resize", () => { if (view) showView(); });
refresh();
