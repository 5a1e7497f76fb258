// Shows what `eke status --json` says, through cockpit's own channel: no server, no port, nothing from elsewhere.
// It runs as the logged-in user and changes nothing.
"use strict";

const EVERY_MS = 5000;
const byId = (id) => document.getElementById(id);

function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (n >= 1024 && unit < units.length - 1) {
        n /= 1024;
        unit += 1;
    }
    return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

// `null` and `undefined`: this machine does not have it.
const shown = (value, text) => (value === null || value === undefined ? "-" : text(value));
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const micros = (ns) => `${(ns / 1000).toFixed(1)} µs`;

function table(id, rows) {
    const lines = rows.map(([name, value]) => {
        const line = document.createElement("tr");
        const head = document.createElement("th");
        head.scope = "row";
        head.textContent = name;
        line.append(head, Object.assign(document.createElement("td"), { textContent: value }));
        return line;
    });
    byId(id).replaceChildren(...lines);
}

function events(list) {
    const items = list.slice().reverse().map((event) => {
        const item = document.createElement("li");
        const time = document.createElement("time");
        const at = new Date(1000 * event.unix_s);
        time.dateTime = at.toISOString();
        time.textContent = at.toLocaleTimeString();
        item.className = event.important ? "important" : "";
        item.append(time, event.text);
        return item;
    });
    byId("events").replaceChildren(...items);
}

function show(status) {
    const { model, machine, prediction, prefetch, io, agent } = status;
    const absent = status.agent_silent
        ? "The agent does not answer (sudo eke down ends it, sudo eke up starts another)."
        : "The agent is not running (sudo eke up starts it).";
    byId("state").textContent = agent === null
        ? `${absent} These are the machine's numbers.`
        : status.applied ? "The plan is applied." : "Nothing is applied: the agent watches.";
    table("memory", [
        ["RAM", bytes(model.ram)],
        ["available to new programs", bytes(model.available)],
        ["tasks waiting for memory, last 10 s", shown(machine.memory_pressure, (p) => `${p.some_avg10.toFixed(1)} %`)],
        ["tasks waiting for disks, last 10 s", shown(machine.io_pressure, (p) => `${p.some_avg10.toFixed(1)} %`)],
    ]);
    table("swap", [
        ["kind", status.backend],
        ["holds", bytes(model.held)],
        ["takes", bytes(model.pool)],
        ["saves", bytes(model.saved)],
        ["ratio", shown(model.effective_ratio, (r) => `${r.toFixed(2)} to 1`)],
        ["predicted ratio", shown(prediction, (p) => `${p.ratio.toFixed(2)} to 1`)],
        ["predicted time to load a page (p99)", shown(prediction, (p) => micros(p.load_p99_ns))],
        ["pages that do not compress", shown(model.incompressible_share, percent)],
        ["pages in and out per second", `${model.pages_in_per_s.toFixed(0)}, ${model.pages_out_per_s.toFixed(0)}`],
    ]);
    table("remedies", [
        ["prefetch: launches, learned, read ahead", shown(prefetch, (p) => `${p.launches}, ${p.learned}, ${bytes(p.ahead)}`)],
        ["io: reads p50, p99", shown(io, (i) => `${shown(i.reads_p50, micros)}, ${shown(i.reads_p99, micros)}`)],
        ["io: last change", shown(io, (i) => shown(i.last, String))],
        ["caches", (status.caches || []).length === 0 ? "-" : String(status.caches.length)],
    ]);
    events(status.events);
}

// Without an agent the exit status is 3, and the document is complete all the same.
function read() {
    let text = "";
    const process = cockpit.spawn(["eke", "status", "--json"], { err: "message" });
    process.stream((part) => {
        text += part;
    });
    process.catch((error) => error.exit_status === 3 || Promise.reject(error))
        .then(() => show(JSON.parse(text)))
        .catch((error) => {
            byId("state").textContent = `eke cannot be asked: ${error.message || error.problem || error}`;
        })
        .finally(() => setTimeout(read, EVERY_MS));
}

read();
