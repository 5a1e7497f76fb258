"use strict";
const shown = { Bytes: v => (v / 1048576).toFixed(1) + " MiB", PerSecond: v => v.toFixed(0) + " /s", Percent: v => v.toFixed(1) + " %" };
for (const figure of document.querySelectorAll("figure")) {
  const data = JSON.parse(figure.querySelector("script").textContent), out = figure.querySelector("output");
  for (const svg of figure.querySelectorAll("svg")) {
    const cursor = svg.querySelector(".cursor"), { left, right, from, to } = svg.dataset;
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      const time = +from + (x - left) / (right - left) * (to - from);
      let at = 0;
      data.t.forEach((t, i) => { if (Math.abs(t - time) < Math.abs(data.t[at] - time)) at = i; });
      const place = +left + (data.t[at] - from) / (to - from) * (right - left);
      cursor.setAttribute("x1", place); cursor.setAttribute("x2", place); cursor.setAttribute("visibility", "visible");
      out.textContent = data.t[at].toFixed(1) + " s: " + data.s.map(s => s.l + " " + (s.v[at] === null ? "unknown" : shown[data.u](s.v[at]))).join(", ");
    });
    svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); out.textContent = ""; });
  }
}
