// The audit trail: the newest operations, asked for while that part is in view.
import { ask } from "/ask.js";
import { age, h, look, p, span, table } from "/draw.js";
import { isFolded } from "/fold.js";

const most = 200;
const first = 20; // so many are shown before more are wanted
const every = 10000;

const $ = (id) => document.getElementById(id);
let operations = [];
let remarks = []; // what is missing in them
let heard = "";
let inView = false;
let shown = first;
let asking = false; // a disk that hangs is not asked more and more

const outcomes = { ok: "good", refused: "bad", failed: "bad", unanswered: "warn" };
const columns = [
  ["When", (x) => age(x.at)], ["Operation", (x) => x.op], ["Target", (x) => x.target], ["Requested by", (x) => [x.by || x.component, x.from && h("div", { class: "dim" }, x.from)]], ["Why", (x) => x.why],
  ["Outcome", (x) => [look(outcomes[x.outcome] ?? "warn", x.outcome || "unknown"), x.times > 1 && ` ${x.times} times`, x.error && h("div", { class: "bad" }, x.error)]],
  ["Took", (x) => x.took > 0 && (x.took < 1e9 ? Math.round(x.took / 1e6) + " ms" : x.took < 120e9 ? (x.took / 1e9).toFixed(1) + " s" : span(x.took / 1e6)), "num"],
];

async function refresh() {
  if (document.hidden || !inView || isFolded("audit") || asking) return;
  asking = true;
  try {
    const answer = await ask("/api/audit");
    const text = await answer.text();
    if (text === heard) return;
    heard = text;
    if (!answer.ok) return show(p("dim", text.slice(0, 300)));
    const trail = JSON.parse(text);
    operations = trail.operations.slice(0, most);
    remarks = (trail.remarks ?? []).map((x) => p("warn", x));
    draw();
  } catch {
    // The state of the connection says so; what is shown stays.
  } finally {
    asking = false;
  }
}

const show = (...inner) => document.querySelector("#audit > div").replaceChildren(...inner.filter((x) => x));

function draw() {
  const wanted = $("audit-text").value.trim().toLowerCase();
  const failed = $("audit-failed").checked;
  const found = operations.filter((x) => (!failed || x.outcome !== "ok") &&
    (!wanted || [x.op, x.target, x.by, x.from, x.component, x.why, x.outcome, x.error, x.node].join(" ").toLowerCase().includes(wanted)));
  const count = operations.length ? `${found.length} of the newest ${operations.length}` : "";
  if ($("audit-count").textContent !== count) $("audit-count").textContent = count;
  if (!operations.length) return show(...remarks, p("dim", remarks.length ? "Nothing else is known." : "Nothing has been recorded."));
  show(...remarks, table("what zedkube did to the cluster and to this device, newest first", columns, found.slice(0, shown)),
    found.length > shown && h("button", { type: "button", "data-key": "more", click: more }, `Show ${found.length - shown} more`));
}

// more shows all of them; the focus goes to the first that was not shown.
function more() {
  const at = shown;
  shown = most;
  draw();
  const row = document.querySelectorAll("#audit tbody tr")[at];
  row?.setAttribute("tabindex", "-1");
  row?.focus();
}

// watchAudit asks while somebody can see the answer.
export function watchAudit() {
  new IntersectionObserver((all) => {
    inView = all.at(-1).isIntersecting;
    refresh();
  }, { rootMargin: "400px" }).observe($("audit"));
  $("audit").addEventListener("fold", refresh);
  setInterval(refresh, every);
  $("audit-text").addEventListener("input", draw);
  $("audit-failed").addEventListener("change", draw);
  $("audit-form").addEventListener("submit", (e) => e.preventDefault());
}
