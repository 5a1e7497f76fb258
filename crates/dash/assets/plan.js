// The plan with its reasons, the commands that undo it, events, and measured latencies.

import { clock, time } from "./scale.js";
import { element } from "./plot.js";

/** A command with a button that copies it. */
export function command(text) {
  const code = element("code", {}, text), button = element("button", { type: "button" }, "Copy");
  button.setAttribute("aria-label", "Copy: " + text);
  button.addEventListener("click", async () => {
    button.textContent = await copy(text, code) ? "Copied" : "Selected: press Ctrl-C";
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  });
  return element("div", { class: "command" }, code, button);
}

/** Browsers allow the clipboard only on pages of this machine; elsewhere the text is selected and copied by execCommand. */
async function copy(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}

export const paragraph = (text, kind = "muted") => element("p", { class: kind }, text);

/** The applied plan with its reasons; without one, how to see what eke would do. */
export function planParts(view) {
  const applied = view.applied;
  if (!applied || !applied.plans.length) {
    return [paragraph("No plan is applied. This shows what eke would do, with reasons, and changes nothing; the second line does it:", ""), command("eke plan"), command("sudo eke up")];
  }
  const since = paragraph(`Applied ${new Date(applied.unix_s * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}.`);
  return [since, ...applied.plans.map(plan => planPart(plan, view.snapshot.model))];
}

function planPart(plan, model) {
  const steps = plan.steps.map(step => element("li", {}, step.what, paragraph(step.why, "")));
  const part = element("article", { class: "panel" }, element("h3", {}, plan.remedy));
  part.append(steps.length ? element("ol", { class: "steps" }, ...steps) : plan.hidden ? "" : paragraph("It changes nothing here."));
  if (plan.hidden) part.append(paragraph(`Not shown to all users: what names single groups, devices, files and processes, ${plan.hidden} in all.`));
  if (plan.prediction) part.append(prediction(plan.prediction, model));
  if (plan.advice.length) part.append(element("h3", {}, "What you may do"), element("ul", { class: "steps" }, ...plan.advice.map(a => element("li", {}, a))));
  return part;
}

function prediction(p, model) {
  const share = v => v === null || v === undefined ? "–" : (100 * v).toFixed(1) + " %";
  const rows = [
    ["bytes held for each byte of RAM", p.ratio.toFixed(2), model.effective_ratio?.toFixed(2) ?? "–"],
    ["pages that do not compress", share(p.incompressible_share), share(model.incompressible_share)],
    ["holds, times its RAM", "up to " + p.holds_times_ram.toFixed(2), ((model.ram + model.saved) / Math.max(model.ram, 1)).toFixed(2)],
    ["a page comes back in (99 of 100)", `${time(p.load_p50_ns)} (${time(p.load_p99_ns)})`, "–"],
  ];
  return table(["", "predicted", "now"], rows);
}

export function table(head, rows) {
  const cell = (text, i) => i ? element("td", {}, text) : element("th", { scope: "row" }, text);
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...head.map(text => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows.map(row => element("tr", {}, ...row.map(cell))))));
}

/** The changes in force, each with the command that undoes it; and the command that undoes all. */
export function journalParts(view) {
  const { changes, hidden } = view.journal;
  if (!hidden && !changes.length) return [paragraph("Nothing is in force: eke has changed nothing on this machine.", "")];
  const parts = [paragraph("Everything back as it was, with the agent alive or dead:", ""), command("sudo eke down")];
  if (hidden) parts.push(paragraph(hidden, ""), command("sudo eke down --print"));
  if (!changes.length) return parts;
  const items = changes.map(c => element("li", {}, c.what, paragraph(c.why, ""), ...(c.undo ? [command(c.undo)] : [])));
  return [...parts, paragraph("Or one change alone, in a root shell; newest first:", ""), element("ol", { class: "steps", reversed: "" }, ...items.reverse())];
}

/** Newest first. */
export function eventParts(view) {
  const events = [...view.snapshot.events].reverse();
  if (!events.length) return [element("li", {}, "", "Nothing yet.")];
  return events.map(e => element("li", {}, element("time", { datetime: new Date(e.unix_s * 1000).toISOString() }, clock(e.unix_s, true)), element("span", {}, e.text)));
}

/** Median to 99th percentile on a logarithmic scale, with the numbers in a visible table. */
export function latencyParts(list, width) {
  const known = list.filter(l => l.p50_ns > 0), ends = known.flatMap(l => [l.p50_ns, l.p99_ns ?? l.p50_ns]);
  const low = Math.floor(Math.log10(Math.min(...ends))), high = Math.max(Math.ceil(Math.log10(Math.max(...ends))), low + 1);
  const left = Math.min(190, width * 0.42), right = width - 22, row = 26, height = known.length * row + 26;
  const x = ns => left + (Math.log10(ns) - low) / (high - low) * (right - left);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", height });
  for (let power = low; power <= high; power++) {
    svg.append(element("path", { class: "grid", d: `M${x(10 ** power).toFixed(1)} 0V${height - 20}` }));
    svg.append(element("text", { x: x(10 ** power).toFixed(1), y: height - 5, "text-anchor": "middle" }, time(10 ** power).replace(/\.0+ /, " ")));
  }
  known.forEach((l, i) => {
    const y = i * row + 15, kind = l.chosen ? "s1" : "s3";
    svg.append(element("text", { x: left - 10, y: y + 4, "text-anchor": "end" }, l.what));
    svg.append(element("path", { class: "bar " + kind, d: `M${x(l.p50_ns).toFixed(1)} ${y}H${x(l.p99_ns ?? l.p50_ns).toFixed(1)}`, "stroke-width": 3 }));
    svg.append(element("circle", { class: kind, cx: x(l.p50_ns).toFixed(1), cy: y, r: 4.5, fill: "var(--card)", "stroke-width": 3 }));
  });
  const rows = known.map(l => [l.what + (l.chosen ? " (in use)" : ""), time(l.p50_ns), l.p99_ns ? time(l.p99_ns) : "–"]);
  return [svg, element("details", {}, element("summary", {}, "As a table"), table(["from", "median", "99 of 100"], rows))];
}
