// The parts of the page that an overview is drawn as: for each, what of the
// overview it depends on, and how it is drawn.
import { age, ago, bar, bytes, clean, facts, h, look, newest, p, severity, span, table, when } from "/draw.js";
import { withCommands } from "/commands.js";

const list = (x) => Array.isArray(x) ? x : [];

// told says where a fact is not known, or how old it is.
function told(t, what) {
  if (!t || (!when(t.At) && !t.Why)) return p("dim", what, " is not known here: nobody has written it.");
  if (t.Why) return p("bad", what, " cannot be read: ", t.Why);
  return p("dim", "Written ", age(t.At), ".");
}

function problems(o) {
  const all = list(o.Problems);
  if (!all.length) return [p("good", "Nothing that the agent knows of.")];
  return [h("ul", { class: "plain" }, newest(all, (x) => x.Severity === "bad").map((x) => h("li", { class: x.Severity === "bad" ? "problem is-bad" : "problem" },
    p("", severity(x), x.About && [" ", h("strong", {}, x.About)], ": ", x.What),
    p("", x.Remedy && [h("strong", {}, "What to do: "), withCommands(x.Remedy, `${x.Name} ${x.About}`)]),
    p("dim", when(x.Since) ? ["Began ", age(x.Since), ". "] : "", x.Name && ["More: ", h("a", { href: "/manual#" + String(x.Name).toLowerCase() }, x.Name), "."]))))];
}

const phases = {
  Idle: ["", "no drain"], Gates: ["warn", "waiting for its turn; no pod has been evicted yet"], Emptying: ["warn", "cordoned, pods are being evicted"],
  Complete: ["good", "the device may go down"], NoCordon: ["bad", "failed: the node could not be cordoned"], NotEmpty: ["bad", "failed: the deadline has passed"],
};
const never = (x) => x.Outlook === "never";
const outlook = (x) => x.Outlook === "never" ? look("never", "NEVER") : look("slow", "slow");
const cordons = { zedkube: "by zedkube, for the drain", operator: "by somebody else", "tie-breaker": "as tie-breaker", kept: "and kept so by an operator" };

function drain(o) {
  const d = o.Drain ?? {};
  const r = d.Progress;
  if (!r) return [d.Why ? p("bad", "The drain status cannot be read: ", d.Why) : p("dim", "No drain has been recorded.")];
  const [kind, meaning] = phases[r.Phase] ?? ["warn", ""];
  const pods = r.Pods ?? {};
  const inner = [
    p("", look((r.Forced ? "warn" : kind) + " phase", r.Phase), r.Forced ? ", FORCED: " + remains(r) : meaning && ", " + meaning, r.Attempt > 0 && `, attempt ${r.Attempt} of ${r.Attempts}`),
    facts([
      ["why", r.Reason, ago(r.Since)],
      ["requester", list(r.Requesters).join(", ")],
      ["started", age(r.Started)], ["deadline", !when(r.Ended) && age(r.Deadline)], ["ended", age(r.Ended)],
      ["pods", pods.Total > 0 && [bar("pods gone", pods.Evicted, pods.Total), `${pods.Evicted} of ${pods.Total} gone, ${pods.Terminating} terminating, ${pods.Waiting} waiting`]],
      ["lock", r.Lock?.Waits || (r.Lock?.Holder && ["held by ", r.Lock.Mine ? "this node" : r.Lock.Holder]), r.Lock?.Holder && ago(r.Lock.Since)],
      ["quorum", r.Quorum], ["cordon", cordons[r.Cordon] ?? r.Cordon],
      ["EVE sees", d.Status, d.RequestedBy && `for ${d.RequestedBy}`],
      ["blocked by", d.Held?.File && look("bad", d.Held.File)],
      ["force file", list(d.Forced).map((f) => f.File + (f.Ignored ? `, ignored: ${f.Ignored}` : `: ${f.Says}`)).join("; ")],
      ["written", age(d.At)],
    ]),
  ];
  if (list(r.Blockers).length) inner.push(table(counted("pod", r.Blockers, r.BlockersOmitted, r.Forced), blockers, newest(r.Blockers, never)));
  if (list(r.Volumes).length) inner.push(table(counted("volume", r.Volumes, r.VolumesOmitted, r.Forced), volumes, newest(r.Volumes, never)));
  if (list(r.Stranded).length) inner.push(p("warn", "Can run only here and go down with the device: ", r.Stranded.join(", "), more(r.StrandedOmitted)));
  return inner;
}

const more = (n) => n > 0 ? ` and ${n} more` : "";
const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const counted = (what, all, omitted, forced) => `${many(all.length, what)} ${forced ? (all.length === 1 ? "goes" : "go") + " down with the device" : all.length === 1 ? "blocks the drain" : "block the drain"}${more(omitted)}`;
const remains = (r) => {
  const pods = list(r.Blockers).length + (r.BlockersOmitted || 0);
  return `the device may go down, ${pods ? many(pods, "pod") + (pods === 1 ? " is" : " are") + " still here" : "although the drain had not ended"}`;
};
const blockers = [
  ["Pod", (x) => x.Pod], ["Outlook", outlook], ["Cause", (x) => x.Cause], ["Why", (x) => x.Why],
  ["What to do", (x) => x.Remedy ? withCommands(x.Remedy, x.Pod) : "wait"], ["Since", (x) => age(x.Since)],
];
const volumes = [
  ["Volume", (x) => [x.Name, x.Claim && h("div", { class: "dim" }, x.Claim)]], ["Outlook", outlook],
  ["Why", (x) => [x.Why, x.LastHere && h("div", { class: "never" }, "the last healthy replica is here")]],
  ["Replicas", (x) => `${x.Healthy} of ${x.Replicas} healthy`],
  ["Rebuild", (x) => x.Rebuilding && [bar("rebuilt", x.Percent, 100), ` ${x.Percent}% on ${clean(x.Rebuilding)}`, h("div", {}, x.ETA > 0 ? `${span(x.ETA * 1000)} to go` : "time left unknown")]],
  ["What to do", (x) => x.Remedy ? withCommands(x.Remedy, x.Name) : "wait"], ["Since", (x) => age(x.Since)],
];

function nodes(o) {
  const n = o.Nodes ?? {};
  if (!list(n.List).length) return [p("dim", n.Why ? "They cannot be read: " + n.Why : "They are not known here: this node does not report for the cluster, and its agent cannot reach the API server.")];
  return [table(`${many(n.List.length, "node")}, from ${n.From || n.File || "the agent"}`, nodeColumns, n.List),
    list(n.Edge).length ? table(`${many(n.Edge.length, "edge node")} of KubeEdge, which are no members`, edgeColumns, n.Edge) : null, when(n.At) ? told(n, "") : null];
}
const amount = (n) => Number.isFinite(n) ? bytes(n) : "-";
const edgeColumns = [
  ["Node", (x) => x.Name],
  ["Status", (x) => x.Ready ? [look("good", "Ready"), when(x.Since) && [" ", age(x.Since)]] : [look("dim", "offline"), when(x.Since) && [" since ", age(x.Since)]]],
  ["Roles", () => "edge"], ["Cordon", (x) => x.Cordoned && look("warn", "cordoned")], ["Address", (x) => x.Address],
  ["CPU", (x) => x.Measured && (Number.isFinite(x.Measured.CPU) ? (x.Measured.CPU / 1e9).toFixed(2) : "-"), "num"],
  ["Memory", (x) => x.Measured && amount(x.Measured.MemoryWorking), "num"],
  ["Network", (x) => x.Measured && `${amount(x.Measured.NetworkReceived)} in, ${amount(x.Measured.NetworkSent)} out`],
  ["Disk", (x) => x.Measured?.FS && `${amount(x.Measured.FS.Used)} of ${amount(x.Measured.FS.Capacity)}, ${amount(x.Measured.FS.Available)} available`],
  ["Measured", (x) => when(x.MeasuredAt) ? age(x.MeasuredAt) : x.Ready && "not yet"],
  ["Versions", (x) => x.Kubelet && "kubelet " + clean(x.Kubelet)],
];
const nodeColumns = [
  ["Node", (x) => [x.Name, x.Own && h("span", { class: "dim" }, " (this one)")]],
  ["Status", (x) => [look(x.Status === "Ready" ? "good" : "bad", x.Status || "Unknown"), when(x.Since) && [" ", age(x.Since)],
    list(x.Pressures).map((c) => h("div", { class: "bad" }, c)), x.Lost && h("div", { class: "bad" }, x.Lost)]],
  ["Roles", (x) => list(x.Roles).join(", ")],
  ["Cordon", (x) => x.Cordoned && [look("warn", "cordoned"), x.CordonedBy && " " + (cordons[x.CordonedBy] ?? `by ${clean(x.CordonedBy)}`), x.CordonWhy && h("div", {}, x.CordonWhy), when(x.CordonSince) && [" ", age(x.CordonSince)]]],
  ["Drain", (x) => x.Drain], ["Address", (x) => x.Address],
  ["Versions", (x) => [x.Kubelet && h("div", {}, "kubelet " + clean(x.Kubelet)), x.Agent && h("div", {}, "zedkube " + clean(x.Agent))]],
];

const appColumns = (showLogs) => [
  ["Application", (x) => [x.Name, h("div", { class: "dim mono" }, x.UUID)]],
  ["State", (x) => [look(x.State === "RunningState" ? "good" : x.Activate ? "bad" : "dim", x.State || "unknown"), !x.Activate && " (configured not to run)", x.Since && [" ", age(x.Since)]]],
  ["Node", (x) => [x.Node || (x.Here && "this one"), x.Designated && h("div", { class: "dim" }, "this is its designated node")]],
  ["Kind", (x) => x.VM ? "virtual machine" : "container"],
  ["Restarts", (x) => x.Restarts, "num"],
  ["Repair", (x) => x.Repair && x.Repair.Phase !== "Well" && [look(x.Repair.Phase === "GaveUp" || x.Repair.Phase === "Refused" ? "bad" : "warn", x.Repair.Phase), " ", x.Repair.Reason]],
  ["Ports", (x) => list(x.Ports).join(", ")],
  ["Log", (x) => h("button", { type: "button", "data-key": "log " + x.UUID, "aria-label": "Log of " + clean(x.Name), click: () => showLogs(x.UUID) }, "Log")],
];

function storage(o) {
  const s = o.Storage ?? {};
  const all = list(s.Volumes);
  const settings = list(s.Settings).filter((x) => x.Why || x.Wanted);
  const ill = (v) => v.Rebuilding > 0 || v.Online < v.Replicas;
  const sorted = [...all].sort((a, b) => ill(b) - ill(a));
  return [
    facts([["health", s.Health, ago(s.Since)], ["being rebuilt", all.length > 0 && String(all.filter((v) => v.Rebuilding > 0).length)]]),
    all.length ? table(`${many(all.length, "volume")}, unhealthy first`, volumeColumns, sorted)
      : p("dim", "Volumes are known on the node that reports for the cluster; those that block a drain are listed there."),
    settings.length ? table("Longhorn settings", settingColumns, settings) : null,
  ];
}
const volumeColumns = [
  ["Volume", (v) => v.Name], ["State", (v) => v.State],
  ["Health", (v) => [look(/healthy/i.test(v.Robustness) ? "good" : "warn", v.Robustness), v.Substate && " " + clean(v.Substate)]],
  ["Replicas", (v) => [`${v.Online} of ${v.Replicas} online`, v.Here && ", one here"]],
  ["Rebuild", (v) => v.Rebuilding > 0 && [bar("rebuilt", v.Rebuilding, 100), ` ${v.Rebuilding}%`]],
  ["Size", (v) => bytes(v.Bytes), "num"],
];
const measure = (x, value) => x.Name === "DiskReservation" && /^\d+$/.test(value) ? bytes(Number(value)) : value;
const settingColumns = [
  ["Setting", (x) => x.Name], ["Wanted", (x) => measure(x, x.Wanted)], ["Actual", (x) => measure(x, x.Actual)], ["Reason", (x) => x.Why && look("warn", x.Why)],
];

const truth = { True: "good", False: "bad", Unknown: "dim" };
function device(o) {
  const c = o.Cluster ?? {}, m = c.Membership ?? {}, g = c.Members ?? {}, l = o.Lease ?? {}, a = o.Agent ?? {}, api = o.API ?? {}, v = o.Conditions ?? {};
  const stale = list(g.Stale).map((x) => x.Node).join(", ");
  return [h("div", { class: "cols" }, [
    facts([
      ["node", o.Node?.Name || "unknown", o.Node?.DeviceName && `(${clean(o.Node.DeviceName)})`], ["UUID", o.Node?.UUID],
      ["agent", a.Runs ? look(a.Hung ? "bad" : "good", a.Hung ? "hung" : "running") : look("bad", "not running"), a.Why, ago(a.Seen)],
      ["API server", look(truth[api.Answers] ?? "dim", { True: "answers", False: "does not answer" }[api.Answers] ?? "unknown"), api.Why, ago(api.Since)],
      ["no cluster", o.Node?.NoCluster],
      ["elected to report", l.Leader || "nobody", l.Mine && "(this node)", ago(l.Since)],
      ["disks", list(o.Disks).map((d) => h("div", {}, `${clean(d.Path)}: ${bytes(d.Free)} of ${bytes(d.Size)} free`))],
    ]),
    facts([
      ["cluster", c.Name || "none", c.Type], ["membership", m.State, m.Reason], ["role", c.Role],
      ["address", c.Address && `${clean(c.Address)} on ${clean(c.Interface)}`, c.Address && look(c.AddressReady ? "good" : "bad", c.AddressReady ? "ready" : "not ready")],
      ["join server", c.JoinServer], ["tie-breaker", g.TieBreaker], ["stale members", stale], ["members", g.Hindered, g.Repairing && "(this node is repairing)"],
      ["error", c.Error && look("bad", c.Error), ago(c.ErrorSince)], ["load balancer", c.LBError && look("bad", c.LBError), ago(c.LBErrorSince)],
      ["phase", c.Object?.Phase, c.Object?.Why, ago(c.Object?.Since)],
      ["workloads", o.Workloads?.Phase !== "Enabled" && o.Workloads?.Phase, o.Workloads?.Phase !== "Enabled" && o.Workloads?.Reason],
      ["k3s", o.Change?.To && `${clean(o.Change.Phase)}: ${clean(o.Change.From)} to ${clean(o.Change.To)}`, o.Change?.To && o.Change.Reason, o.Change?.To && ago(o.Change.Since)],
      ["versions", ["Kubernetes", "KubeVirt", "CDI", "Longhorn", "CNI"].filter((x) => v[x]).map((x) => `${x} ${v[x]}`).join(", ")], ["installed", age(v.InstalledAt)],
      ["k3s", list(o.K3s).map((x) => h("div", {}, clean(x)))],
    ]),
  ]),
  list(o.Conditions?.List).length ? table("conditions, the newest first", conditionColumns, newest(o.Conditions.List)) : null,
  list(o.Report?.Sections).some((x) => x.Why) ? table("stale parts of the report", sectionColumns, newest(o.Report.Sections.filter((x) => x.Why), undefined, (x) => x.StaleSince)) : null,
  list(o.Unreadable).length ? table("unreadable files", [["File", (x) => x.File], ["Why", (x) => x.Why]], o.Unreadable) : null];
}
const conditionColumns = [
  ["Condition", (x) => x.Type], ["Holds", (x) => look(truth[x.Status] ?? "dim", x.Status)], ["Reason", (x) => x.Reason],
  ["Message", (x) => x.Message], ["Ends", (x) => age(x.ExpiresAt)], ["Since", (x) => age(x.Since)],
];
const sectionColumns = [["Part", (x) => x.Name], ["Why", (x) => x.Why], ["Since", (x) => age(x.StaleSince)]];

// parts are [id, what it depends on, how it is drawn].
export const parts = (showLogs) => [
  ["problems", (o) => o.Problems, problems],
  ["drain", (o) => o.Drain, drain],
  ["nodes", (o) => o.Nodes, nodes],
  ["apps", (o) => o.Apps, (o) => list(o.Apps?.List).length ? [table(many(o.Apps.List.length, "application"), appColumns(showLogs), o.Apps.List)] : [p("dim", "This device has none.")]],
  ["storage", (o) => o.Storage, storage],
  ["device", (o) => [o.Node, o.Agent, o.API, o.Lease, o.Disks, o.Cluster, o.Workloads, o.Conditions, o.Report, o.Unreadable], device],
];
