// The present state in words and a few numbers.

import { bytes, shown } from "./scale.js";
import { element } from "./plot.js";

const LITTLE_AVAILABLE = 0.10, MUCH_WAITING = 5;

/** What the machine is short of, in a sentence. */
export function verdict(view) {
  const { model, machine } = view.snapshot, share = model.available / Math.max(model.ram, 1);
  const waiting = [["memory", machine.memory_pressure], ["reads and writes", machine.io_pressure], ["a CPU", machine.cpu_pressure]]
    .filter(([, p]) => p && p.some_avg10 > MUCH_WAITING).map(([what, p]) => `${what} (${shown.percent(p.some_avg10)} of the time)`);
  const short = share < LITTLE_AVAILABLE ? `Short of memory: ${bytes(model.available)} of ${bytes(model.ram)} are available.` : "";
  if (waiting.length) return `${short} Tasks wait for ${list(waiting)}.`.trim();
  return short || `Short of nothing now: ${bytes(model.available)} of ${bytes(model.ram)} are available, and tasks hardly wait.`;
}

const list = words => words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words.at(-1);

/** The source of the data, as a state and a sentence. */
export function who(view) {
  const { agent, agent_silent: silent, applied, backend } = view.snapshot;
  const plan = applied ? `eke's plan is applied: ${backend}` : "no plan is applied" + (backend === "none" ? "" : `, but there is compressed swap: ${backend}`);
  const absent = silent ? "does not answer" : "is not running";
  if (!agent) return ["alone", `The agent ${absent}; this page samples the machine itself. ${sentence(plan)}`];
  const size = agent.resident ? `, ${bytes(agent.resident)}` : "";
  return ["up", `The agent (process ${agent.pid}${size}) answers; ${plan}.`];
}

const sentence = text => (text.startsWith("eke") ? text : text.charAt(0).toUpperCase() + text.slice(1)) + ".";

/** The tiles: title, value, details, share of a bar. */
export function tiles(view) {
  const { model, machine, prefetch, prediction } = view.snapshot, tiles = [];
  tiles.push(["Available", bytes(model.available), `of ${bytes(model.ram)} RAM`, model.available / Math.max(model.ram, 1)]);
  const ratio = model.effective_ratio, predicted = prediction ? `; predicted ${prediction.ratio.toFixed(2)}` : "";
  tiles.push(["Gained by compression", ratio ? bytes(model.saved) : "nothing yet",
    ratio ? `${bytes(model.held)} compressed to ${bytes(model.pool)}: ${ratio.toFixed(2)} to 1${predicted}` : `no page had to leave RAM${predicted && `; predicted ${prediction.ratio.toFixed(2)} to 1`}`]);
  const p = machine.memory_pressure;
  tiles.push(["Waiting for memory", p ? shown.percent(p.some_avg10) : "–", p ? "of the last 10 s some task waited" : "this kernel does not count it"]);
  tiles.push(view.caches ? cacheTile(view.caches) : prefetchTile(prefetch));
  return tiles;
}

function cacheTile(c) {
  const asked = c.hits + c.misses, name = c.mounts === 1 ? "1 cache" : `${c.mounts} caches`;
  const more = `${name}${c.serving < c.mounts ? `, ${c.mounts - c.serving} not serving` : ""}: ${bytes(c.files)} of files in ${bytes(c.memory)}`;
  return ["Found in the cache", asked ? shown.percent(100 * c.hits / asked) : "–", more];
}

function prefetchTile(p) {
  if (!p) return ["Launches predicted", "–", "prefetch is off"];
  const more = p.off ? `reads nothing ahead now: ${p.off}` : `${p.programs} programs known; ${bytes(p.ahead)} read ahead, up to ${bytes(p.used)} used`;
  return ["Launches predicted", `${p.predicted} of ${p.launches}`, more];
}

/** Makes the tiles' elements once, then only fills them. */
export function fillTiles(place, tiles) {
  while (place.children.length < tiles.length) {
    place.append(element("div", {}, element("dt"), element("dd", { class: "value" }), element("dd", { class: "more" })));
  }
  tiles.forEach(([title, value, more, share], i) => {
    const [dt, dd, rest] = place.children[i].children;
    dt.textContent = title; dd.textContent = value; rest.textContent = more;
    if (share !== undefined) rest.prepend(element("meter", { min: 0, max: 1, low: LITTLE_AVAILABLE, optimum: 1, value: share.toFixed(3), "aria-label": title }));
  });
}
