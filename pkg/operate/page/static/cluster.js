// The whole cluster: each node as it tells of itself. The agent asks the others while
// that part is in view, and what they say is drawn as it comes.
import { ask } from "/ask.js";
import { age, clean, h, look, now, p, severity, span, table, when } from "/draw.js";
import { isFolded } from "/fold.js";

const every = 10000;
const list = (x) => Array.isArray(x) ? x : [];
let rows = [];
let nodesAt = "";
let trouble = "";
let inView = false;
let asking = false;

// lines are what a stream says, each a value of JSON.
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const all = (rest + value).split("\n");
    rest = all.pop();
    for (const text of all) if (text) yield JSON.parse(text);
  }
}

async function refresh() {
  if (document.hidden || !inView || isFolded("cluster") || asking) return;
  asking = true;
  try {
    const answer = await ask("/api/cluster-view");
    trouble = answer.ok ? "" : clean((await answer.text()).slice(0, 300));
    if (answer.ok) await take(answer.body);
  } catch {
    // The state of the connection says so; what is shown stays, with its age.
  } finally {
    asking = false;
    draw();
  }
}

async function take(body) {
  const present = new Set();
  for await (const l of lines(body)) {
    if (l.NodesAt) nodesAt = l.NodesAt;
    if (l.End) rows = rows.filter((r) => present.has(r.Name));
    if (!l.Row) continue;
    present.add(l.Row.Name);
    const at = rows.findIndex((r) => r.Name === l.Row.Name);
    if (at < 0) rows.push(l.Row);
    else if (l.Row.State !== "asking") rows[at] = l.Row; // who is asked once more is shown as he answered last
    draw();
  }
}

const answered = (r) => r.State === "answered";
const told = (r, inner) => inner ? (answered(r) ? inner : ["was ", inner]) : null;

// since is how long ago something was by the clock of the node that says so.
function since(r, iso) {
  const at = when(iso), read = when(r.View?.At);
  return at && read ? h("span", { class: "dim" }, ` (${span(Math.max(0, read - at + now() - when(r.HeardAt)))} ago)`) : null;
}

function heard(r) {
  const last = when(r.HeardAt) ? [", last known ", age(r.HeardAt)] : r.State === "silent" ? ", never heard" : "";
  if (answered(r)) return age(r.HeardAt);
  if (r.State === "asking") return ["asking", last];
  if (r.State === "not asked") return ["not asked: ", r.Why];
  return [look("warn", r.Why), last];
}

const columns = [
  ["Node", (r) => [r.Name || "this node", r.Own && h("span", { class: "dim" }, " (this one)")]],
  ["Status", (r) => r.Node?.Status && [look(r.Node.Status === "Ready" ? "good" : "bad", r.Node.Status), when(r.Node.Since) && [" ", age(r.Node.Since)]]],
  ["Cluster, as it sees it", (r) => r.View?.Phase && [told(r, look(r.View.Phase === "Provisioned" ? "good" : "warn", r.View.Phase)), since(r, r.View.Since),
    r.View.Phase !== "Provisioned" && r.View.Why && h("div", {}, r.View.Why)]],
  ["Drain", (r) => {
    const d = r.View?.Drain?.Progress;
    return d ? [told(r, d.Phase), d.Phase !== "Idle" && [since(r, d.Since), h("div", {}, d.Reason)]] : r.Node?.Drain;
  }],
  ["Problems", (r) => r.View && (list(r.View.Problems).length
    ? list(r.View.Problems).slice(0, 5).map((x) => h("div", {}, answered(r) ? "" : "was ", severity(x), " ", x.Name, ": ", x.About && x.About + ": ", x.What, since(r, x.Since)))
      .concat(list(r.View.Problems).length > 5 ? [h("div", {}, `and ${r.View.Problems.length - 5} more`)] : [])
    : told(r, "none"))],
  ["Applications", (r) => r.View && list(r.View.Apps).filter((x) => x.Here).map((x) => h("div", {}, told(r, look(x.State === "RunningState" ? "good" : "bad", x.Name))))],
  ["Answered", heard],
];

function draw() {
  const box = document.querySelector("#cluster > div");
  box.replaceChildren(...[
    trouble && p("warn", trouble),
    rows.length ? table(`${rows.length} node${rows.length === 1 ? "" : "s"}, as each tells of itself`, columns, rows) : p("dim", "The nodes are asked while this part is in view."),
    when(nodesAt) && rows.length ? p("dim", "What the Nodes show was known ", age(nodesAt), ".") : null,
  ].filter((x) => x));
}

// watchCluster asks while somebody can see the answer.
export function watchCluster() {
  new IntersectionObserver((all) => {
    inView = all.at(-1).isIntersecting;
    refresh();
  }).observe(document.getElementById("cluster"));
  document.getElementById("cluster").addEventListener("fold", refresh);
  setInterval(refresh, every);
  draw();
}
