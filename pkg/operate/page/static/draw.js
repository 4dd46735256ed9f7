// What all parts of the page are drawn with. Whatever comes from the device is
// put in as text; nothing here makes HTML of it.

// Characters that move, turn or hide others, and those that are none.
const odd = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const longest = 2000;

// clean makes one line of plain text of anything.
export function clean(value) {
  let s = String(value ?? "");
  if (s.length > longest) s = s.slice(0, longest - 1) + "…";
  return s.replace(/[\s]+/g, " ").replace(odd, (c) => {
    const code = c.codePointAt(0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : "\\u" + code.padStart(4, "0");
  });
}

// h makes an element. Text among what is in it is cleaned; nothing and "" are
// left out.
export function h(tag, attributes, ...inner) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value !== false && value != null) e.setAttribute(name, value === true ? "" : value);
  }
  add(e, inner);
  return e;
}

function add(e, inner) {
  for (const x of inner.flat(3)) {
    if (x == null || x === "" || x === false) continue;
    e.append(x instanceof Node ? x : clean(x));
  }
}

// Ages count by the device's clock: what it said last, and the time since.
let ahead = 0;
export const setClock = (iso) => { ahead = when(iso) - Date.now() || 0; };
export const now = () => Date.now() + ahead;

// when is a time in milliseconds, 0 for none: Go's zero is in the year 1.
export function when(iso) {
  const t = Date.parse(iso ?? "");
  return t > 0 ? t : 0;
}

export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return s + "s";
  const m = Math.floor(s / 60);
  if (m < 60) return m + "m";
  const hours = Math.floor(m / 60);
  if (hours < 48) return hours + "h" + (m % 60 ? (m % 60) + "m" : "");
  return Math.floor(hours / 24) + "d" + (hours % 24 ? (hours % 24) + "h" : "");
}

export const clock = (ms) => new Date(ms).toISOString().replace("T", " ").slice(0, 19) + "Z";

// age is a time that goes on: "5m ago", "in 5m".
export function age(iso) {
  const at = when(iso);
  return at ? h("time", { datetime: new Date(at).toISOString(), title: clock(at), "data-at": at }, passed(at)) : null;
}

function passed(at) {
  const ms = now() - at;
  return ms < -1000 ? "in " + span(-ms) : span(ms) + " ago";
}

// tick lets all ages go on.
export function tick() {
  for (const e of document.querySelectorAll("time[data-at]")) {
    const text = passed(Number(e.dataset.at));
    if (e.textContent !== text) e.textContent = text;
  }
}

export function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (n < 1000 || unit === "TiB") return (n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)) + " " + unit;
    n /= 1024;
  }
}

// The roles are said because a narrow window shows rows as cards, and then
// browsers forget that it is a table.
const most = 300;

// table draws rows. A column is [name, what is in it, class]; the first one names
// the row.
export function table(caption, columns, rows) {
  const cell = ([name, get, look], row, i) => {
    const inner = [get(row)].flat(3).filter((x) => x != null && x !== "" && x !== false);
    const attributes = { "data-label": name, class: ((look ?? "") + (inner.length ? "" : " empty")).trim() || null };
    return i === 0
      ? h("th", { ...attributes, scope: "row", role: "rowheader" }, inner)
      : h("td", { ...attributes, role: "cell" }, inner.length ? inner : "-");
  };
  return h("div", { class: "scroll" }, h("table", { role: "table" },
    h("caption", {}, caption, rows.length > most && `; ${rows.length - most} more are not shown`),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
      columns.map(([name]) => h("th", { scope: "col", role: "columnheader" }, name)))),
    h("tbody", { role: "rowgroup" }, rows.slice(0, most).map((row) =>
      h("tr", { role: "row" }, columns.map((c, i) => cell(c, row, i)))))));
}

// newest are rows with the newest first, but those that matter most before all others.
export const newest = (rows, matters = () => false, at = (x) => x.Since) => [...rows].sort((a, b) => matters(b) - matters(a) || when(at(b)) - when(at(a)));

// facts is a list of names and values; what has no value is left out.
export function facts(pairs) {
  const rows = pairs.map(([name, ...inner]) => [name, inner.flat(3).filter((x) => x != null && x !== "" && x !== false)]);
  return h("dl", {}, rows.filter(([, inner]) => inner.length).map(([name, inner]) => [
    h("dt", {}, name), h("dd", {}, inner.map((x, i) => i ? [document.createTextNode(" "), x] : x))]));
}

// ago is an age behind something else.
export const ago = (iso) => when(iso) ? h("span", { class: "dim" }, "(", age(iso), ")") : null;

export const bar = (label, value, max) => h("progress", { value, max, "aria-label": label });
export const look = (kind, text) => h("span", { class: kind }, text);
// severity is that of a problem, in the words of zedkube status.
export const severity = (x) => x.Severity === "bad" ? look("bad", "BAD") : look("warn", "WARN");
export const p = (kind, ...inner) => h("p", { class: kind || null }, ...inner);
