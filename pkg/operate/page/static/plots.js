// Measurements as small plots.
import { bytes, clean, h, span } from "/draw.js";

const kept = 240;
const gone = 600000; // what was not measured for so long is not there any more
const kinds = [
  ["node-cpu", "CPU of this node", cores], ["node-memory", "Memory of this node", bytes],
  ["requests", "Requests to the API server", (v) => Math.round(v * 60) + "/min"],
  ["app-cpu", "CPU of", cores], ["app-memory", "Memory of", bytes],
];
const lines = new Map(); // by kind and pod
const figures = new Map();

function cores(v) { return v.toFixed(v < 1 ? 2 : 1) + (v < 1.05 && v > 0.95 ? " core" : " cores"); }

// measured takes what came: everything there is, or what is new.
export function measured(m) {
  if (m.Whole) lines.clear();
  for (const s of m.Series ?? []) {
    const key = s.Kind + " " + s.Pod;
    const before = lines.get(key)?.Points ?? [];
    lines.set(key, { ...s, Points: [...before, ...s.Points].slice(-kept) });
  }
  const box = document.querySelector("#metrics > div");
  const newest = Math.max(0, ...[...lines.values()].map((s) => s.Points.at(-1)?.[0] ?? 0));
  for (const [key, s] of lines) if (newest - s.Points.at(-1)[0] >= gone) lines.delete(key);
  for (const key of figures.keys()) if (!lines.has(key)) figures.delete(key);
  const shown = [];
  for (const [kind, title, unit] of kinds) {
    for (const [key, s] of lines) {
      if (s.Kind === kind) shown.push(figure(key, s, s.Name ? `${title} ${clean(s.Name)}` : title, unit));
    }
  }
  if (!shown.length) return box.replaceChildren(h("p", { class: "dim" }, "Nothing has been measured yet: this takes a minute, and the kubelet has to answer."));
  const grid = box.querySelector(".plots") ?? h("div", { class: "plots" });
  if (!grid.isConnected) box.replaceChildren(grid);
  if (shown.length !== grid.children.length || shown.some((f, i) => f !== grid.children[i])) grid.replaceChildren(...shown);
}

function svg(tag, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

// figure is made once and then changed: a page reader does not lose its place.
function figure(key, s, title, unit) {
  let f = figures.get(key);
  if (!f) {
    f = { box: h("figure"), name: h("span"), value: h("strong"), picture: svg("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img" }), area: svg("polygon", {}), line: svg("polyline", {}) };
    f.picture.append(f.area, f.line);
    f.box.append(h("figcaption", {}, f.name, f.value), f.picture);
    figures.set(key, f);
  }
  const values = s.Points.map((p) => p[1]);
  const [from, to] = [s.Points[0][0], s.Points.at(-1)[0]];
  const top = Math.max(...values) * 1.15 || 1;
  const x = (t) => to > from ? (t - from) / (to - from) * 100 : 100;
  const points = s.Points.map(([t, v]) => `${x(t).toFixed(1)},${(39 - v / top * 38).toFixed(1)}`);
  if (points.length === 1) points.unshift("0," + points[0].split(",")[1]);
  f.line.setAttribute("points", points.join(" "));
  f.area.setAttribute("points", `0,40 ${points.join(" ")} 100,40`);
  f.name.textContent = title;
  f.value.textContent = unit(values.at(-1)) + (s.Max ? " of " + unit(s.Max) : "");
  f.picture.setAttribute("aria-label", `${title}: now ${f.value.textContent}; in ${span(to - from)} from ${unit(Math.min(...values))} to ${unit(Math.max(...values))}`);
  return f.box;
}
