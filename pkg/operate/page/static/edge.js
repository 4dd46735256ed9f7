// KubeEdge: how it is, its settings as a form, the dialog by which a device joins, and how one leaves. The agent runs
// zedkube-edge for it while this part is in view, and it is changed over the agent's socket alone.
import { ask } from "/ask.js";
import { age, clean, h, look, p, table, when } from "/draw.js";
import { command } from "/commands.js";
import { isFolded } from "/fold.js";
import { openPlan } from "/actions.js";

const every = 5000;
const $ = (id) => document.getElementById(id);
const list = (x) => Array.isArray(x) ? x : [];
let view = null;
let inView = false;
let asking = false;
let watching = false;
let built = ""; // what the form was made of
let joining = ""; // the name in the dialog

async function refresh() {
  if (document.hidden || asking || !$("join").open && (!inView || isFolded("edge"))) return;
  asking = true;
  try {
    const answer = await ask("/api/edge");
    if (answer.ok) view = await answer.json();
  } catch {
    // The state of the connection says so.
  } finally {
    asking = false;
    if (view) draw();
  }
}

const state = (x) => look(x.State === "Ready" ? "good" : x.State === "asked" ? "warn" : "dim", x.State === "asked" ? "asked to join" : x.State);
const nodeColumns = [["Edge node", (x) => x.Name], ["State", (x) => [state(x), when(x.Since) && [" ", age(x.Since)]]], ["Address", (x) => x.Address]];
const past = ["left", "refused"];
// leaving are the buttons of an edge node's row.
const leaving = (x) => past.includes(x.State) ? null : [false, true].map((lost) => h("button", {
  type: "button", "data-key": `leave ${x.Name} ${lost}`, "aria-label": `Leave${lost ? " as lost" : ""} … ${clean(x.Name)}`, click: () => leave(x.Name, lost),
}, `Leave${lost ? " as lost" : ""} …`));

function draw() {
  const s = view.Status;
  const box = document.querySelector("#edge > div");
  const key = box.contains(document.activeElement) && document.activeElement.dataset.key;
  box.replaceChildren(...(s ? status(s) : [p(view.Missing ? "dim" : "bad", view.Missing || view.Error)]));
  if (key) [...box.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key)?.focus();
  $("edge-form").hidden = !s;
  if (s) form(s);
  joined(s);
}

function status(s) {
  return [
    s.Enabled ? p("", look(s.Available === s.Wanted ? "good" : "bad", "KubeEdge is on"), `, ${s.Available} of ${s.Wanted} cloudcores available.`) : p("", "KubeEdge is off."),
    list(s.Problems).length > 0 && h("ul", { class: "plain" }, s.Problems.map((x) => h("li", { class: "problem is-bad" }, x))),
    list(s.Warnings).map((x) => p("warn", x)),
    s.Enabled && p("", "Edge nodes dial ", list(s.Addresses).join(", ") || "nothing yet", "."),
    p("", "A firewall between edge nodes and servers has to let through: ", list(s.Ports).map((x) => `${x.Port}/${x.Protocol} (${x.Name})`).join(", "), "."),
    list(s.Nodes).length > 0 && table(`${s.Nodes.length} edge node${s.Nodes.length === 1 ? "" : "s"}`, view.Here ? [...nodeColumns, ["Leave", leaving]] : nodeColumns, s.Nodes),
    p("dim", "As of ", age(view.At), "."),
  ].flat().filter((x) => x);
}

// form makes the fields once, and later changes only those that nobody has changed here.
function form(s) {
  const rows = list(s.Settings);
  const shape = JSON.stringify([view.Here, view.Program, s.Enabled, rows.map((x) => x.Name)]);
  if (shape !== built) {
    built = shape;
    $("edge-form").replaceChildren(...fields(rows), ...(view.Here ? buttons(s) : commands()));
  }
  for (const x of rows) {
    const field = $("edge-" + x.Name);
    if (!field) continue;
    const value = shown(x);
    if (!view.Here) field.textContent = value || "default";
    else if (field.value === field.dataset.was || field.dataset.was === undefined) field.value = value;
    if (view.Here) { field.dataset.was = value; field.placeholder = x.Default; }
    $("edge-default-" + x.Name).textContent = clean(x.Default);
  }
  changes();
}

const shown = (x) => x.Allowed === "number" && x.Value === "0" ? "" : x.Value;

function fields(rows) {
  const columns = [
    ["Setting", (x) => view.Here ? h("label", { for: "edge-" + x.Name }, x.Name) : x.Name],
    ["Value", field],
    ["Default", (x) => h("span", { class: "dim", id: "edge-default-" + x.Name }, x.Default)],
    ["A change restarts", (x) => x.Restarts], ["Meaning", (x) => x.Means],
  ];
  return [table("Settings of KubeEdge", columns, rows)];
}

function field(x) {
  const id = "edge-" + x.Name;
  if (!view.Here) return h("span", { id });
  if (x.Allowed.includes("|")) return h("select", { id, change: changes }, x.Allowed.split("|").map((v) => h("option", { value: v }, v)));
  return h("input", { id, type: "text", inputmode: x.Allowed === "number" ? "numeric" : null, autocomplete: "off", spellcheck: "false", input: changes });
}

// changed are the settings that differ from those in the cluster.
function changed() {
  const all = {};
  for (const x of list(view.Status?.Settings)) {
    const field = $("edge-" + x.Name);
    if (field && field.value.trim() !== field.dataset.was) all[x.Name] = field.value.trim() || (x.Allowed === "number" ? "0" : "");
  }
  return all;
}

function changes() {
  if (!view.Here) return;
  const n = Object.keys(changed()).length;
  if ($("edge-set")) $("edge-set").disabled = n === 0;
  $("edge-count").textContent = n ? `${n} setting${n === 1 ? "" : "s"} changed here, not in the cluster yet` : "";
}

const act = (id, text, click) => h("button", { type: "button", id, click }, text + " …");
const check = (id, text) => h("label", {}, h("input", { type: "checkbox", id }), " ", text);

function buttons(s) {
  const enable = () => plan("Enable KubeEdge", "KubeEdge's cloud side is made in the cluster, and kept as these settings say.", { Do: "enable", HA: $("edge-ha-too").checked, Force: $("edge-force-set").checked, Settings: changed() });
  const set = () => plan("Change settings of KubeEdge", "The settings are written, and the controller acts by them.", { Do: "set", Force: $("edge-force-set").checked, Settings: changed() });
  const disable = () => plan("Disable KubeEdge", "KubeEdge's cloud side is removed. Pods on edge nodes go on.", { Do: "disable", Purge: $("edge-purge").checked, Force: $("edge-force").checked });
  return [
    h("p", { id: "edge-count", role: "status" }),
    h("div", { class: "bar" }, s.Enabled ? act("edge-join", "Join an edge node", openJoin) : [act("edge-enable", "Enable", enable), check("edge-ha-too", "--ha: a cloudcore on each of several servers")],
      act("edge-set", "Change settings", set), check("edge-force-set", "--force: also what cuts off edge nodes that were asked to join")),
    s.Enabled && h("div", { class: "bar" }, act("edge-disable", "Disable", disable), check("edge-purge", "--purge: remove also what lets edge nodes connect again"), check("edge-force", "--force: also while edge nodes are Ready, or have to join again")),
  ].filter((x) => x);
}

const commands = () => [
  p("", "This connection only reads. To act, run the command on the device as root, or open the page through the agent's socket:"),
  h("ul", { class: "plain" }, ["enable", "enable --ha", "set KEY=VALUE", "disable", "join NAME", "leave NAME", "leave NAME --lost"].map((x) => h("li", {}, command(view.Program + " " + x, "edge " + x)))),
];

// plan shows the plan of what is wanted, and does it once it is confirmed.
function plan(title, effect, wanted, done) {
  const body = JSON.stringify(wanted);
  openPlan({
    Title: title, Effect: effect, Command: "edge " + wanted.Do, File: wanted.Do === "bundle" && `zedkube-edge-${wanted.Name}`,
    show: (signal) => ask("/api/edge/plan", signal, { method: "POST", headers: { "Content-Type": "application/json" }, body }),
    act: (id) => ask("/api/edge/do", undefined, { method: "POST", headers: { "Zedkube-Plan": id } }),
    done: (said) => {
      const elsewhere = done?.(said);
      if (!done) built = ""; // the form shows the cluster's settings again
      refresh();
      return elsewhere;
    },
  });
}

function leave(name, lost) {
  plan("Leave: edge node " + clean(name), lost ? "For a device that is gone: its Node is deleted at once, and its name is refused until it is asked to join again." :
    "The Node is cordoned and emptied, and deleted once leave.sh has run on the device. This waits 45 s for that; afterwards the same goes on from there.", { Do: "leave", Name: name, Lost: lost });
}

function openJoin() {
  joining = "";
  $("join-name").value = "";
  $("join-done").replaceChildren();
  $("join-state").replaceChildren();
  $("join").showModal();
}

const device = () => ({ Name: $("join-name").value.trim(), Arch: $("join-arch").value });

$("join-form").addEventListener("submit", (e) => {
  e.preventDefault();
  const wanted = device();
  plan("Join edge node " + clean(wanted.Name), "The name gets an address, and a token by which one device may join. Keep the command to those who set it up: the token is in it.", { Do: "join", ...wanted }, (said) => {
    joining = wanted.Name;
    $("join-done").replaceChildren(...lines(said));
    $("plan").close();
    return true;
  });
});
$("join-bundle").addEventListener("click", () => {
  if (!$("join-form").reportValidity()) return;
  const wanted = device();
  plan("Bundle for edge node " + clean(wanted.Name), "An archive (tar.gz) with what the device needs, to carry there. The token is in it.", { Do: "bundle", ...wanted }, () => { joining = wanted.Name; });
});
$("join-close").addEventListener("click", () => $("join").close());
$("join").addEventListener("close", () => { if (!$("join").open) $("join-done").replaceChildren(); }); // the token is shown once

// lines are what a join has said, for the device.
function lines(said) {
  let d;
  try { d = JSON.parse(said); } catch { return [p("bad", "zedkube-edge did not say how to join.")]; }
  return [
    p("", "On the device, as root, with edgecore in its PATH:"), h("p", {}, command(d.command, "join command")),
    d.keadm && p("", "Or with KubeEdge's own tool:"), d.keadm && h("p", {}, command(d.keadm, "join keadm")),
    list(d.keadmLacks).map((x) => p("dim", x)), list(d.notes).map((x) => p("warn", x)),
    d.tokenUntil && p("", "The token in it ends ", age(d.tokenUntil), ". It is shown once."),
  ].flat().filter((x) => x);
}

// joined shows how far the device is that is to join.
function joined(s) {
  const x = list(s?.Nodes).find((n) => n.Name === joining);
  const text = joining && (x ? `${joining}: ${x.State === "asked" ? "asked to join" : x.State}` : `${joining}: not seen yet`);
  if ($("join-state").textContent !== text) $("join-state").replaceChildren(text && x ? h("span", {}, clean(joining), ": ", state(x)) : document.createTextNode(clean(text)));
}

// watchEdge asks while somebody can see the answer, once the page is drawn: before, all of it is in view.
export function watchEdge() {
  if (watching) return;
  watching = true;
  new IntersectionObserver((all) => {
    inView = all.at(-1).isIntersecting;
    refresh();
  }).observe($("edge"));
  $("edge").addEventListener("fold", refresh);
  setInterval(refresh, every);
}
