// What can be done from here: over the agent's socket each action with its plan, elsewhere the
// commands to paste on the device.
import { ask } from "/ask.js";
import { clean, h, p } from "/draw.js";
import { command, setProgram } from "/commands.js";

const $ = (id) => document.getElementById(id);
let heard = "";
let program = "zedkube";
let current = null; // the action in the dialog
let id = ""; // of the plan that it shows
let asked = null; // aborts what is asked for it

// loadActions asks what can be done. Until that is known, nothing can.
export async function loadActions() {
  try {
    const answer = await ask("/api/actions");
    if (!answer.ok) return;
    const text = await answer.text();
    if (text === heard) return;
    heard = text;
    draw(JSON.parse(text));
  } catch {
    // The state of the connection says so.
  }
}

function draw(all) {
  program = all.Program;
  setProgram(program);
  const row = (a) => h("li", {},
    h("div", {}, all.Here ? h("button", { type: "button", "data-key": "act " + a.Name, click: () => openPlan({ ...a, show: (signal) => ask("/api/actions/" + a.Name, signal), act: (plan) => ask("/api/actions/" + a.Name, undefined, { method: "POST", headers: { "Zedkube-Plan": plan } }), File: a.File && "zedkube-support-" + host() }) }, a.Title + " …") : h("strong", {}, a.Title)),
    h("div", {}, h("p", { class: "dim" }, a.Effect), command(program + " " + a.Command, "action " + a.Name)));
  document.querySelector("#actions > div").replaceChildren(
    p("", all.Here ? "Each shows its plan first. Nothing changes before you confirm it, and the audit says who did." :
      "This connection only reads. To act, run the command on the device as root, or open the page through the agent's socket:",
    !all.Here && [" ", command("ssh -L 12347:/run/zedkube/zedkube.sock root@DEVICE", "ssh")]),
    h("ul", { class: "plain actions" }, all.Actions.map(row)));
  $("foot-does").textContent = all.Here ? "" : "This page is read-only.";
}

// plain is text of several lines, of which nothing moves or hides others.
const plain = (text) => String(text ?? "").split("\n").map((line) => line.replace(/\S+|\s+/g, (s) => /\s/.test(s) ? " ".repeat(s.length) : clean(s))).join("\n");

const say = (text, bad) => { $("plan-state").textContent = text; $("plan-state").className = bad ? "bad" : ""; };

function put(text) {
  $("plan-text").textContent = plain(text);
  $("plan-text").hidden = !text;
}

const host = () => clean($("name").textContent).toLowerCase().replace(/[^a-z0-9-]/g, "");

// openPlan shows the plan of an action, by its show, which its act does: done, where it has one, is told what
// that said. Where the agent has no plan to confirm, as while it is busy, nothing can be.
export async function openPlan(a) {
  current = a;
  id = "";
  asked?.abort();
  const me = asked = new AbortController();
  $("plan-h").textContent = a.Title;
  $("plan-effect").textContent = a.Effect;
  $("plan-command").replaceChildren(command(program + " " + a.Command));
  $("plan-do").textContent = a.Title;
  $("plan-do").hidden = false;
  $("plan-do").disabled = true;
  $("plan-close").textContent = "Cancel";
  put("");
  say("Making the plan");
  $("plan").showModal();
  try {
    const plan = await read(await a.show(me.signal));
    if (plan.Command) $("plan-command").replaceChildren(command(program + " " + plan.Command));
    put(plan.Plan);
    id = plan.ID ?? "";
    if (!id) say(`${clean(plan.Error)}. Nothing has been changed.`, true);
    else if (plan.Error) say("Not all of the plan is known. Nothing has been changed. The command can be given as in a shell: it refuses what it cannot do.", true);
    else say("This is the plan. Nothing has been changed.");
    $("plan-do").disabled = !id;
  } catch {
    if (!me.signal.aborted) say("No answer from the agent. Nothing has been changed.", true);
  }
}

const read = async (answer) => answer.headers.get("Content-Type") === "application/json" ? answer.json() : { Error: clean((await answer.text()).slice(0, 300)) };

// act does what was planned.
async function act() {
  const a = current, plan = id;
  id = "";
  $("plan-do").disabled = true;
  $("plan-close").textContent = "Close";
  say("Under way");
  try {
    const answer = await a.act(plan);
    if (a.File && answer.ok) {
      save(await answer.blob(), a.File);
      a.done?.();
      if (a === current) say("The archive was saved by this browser. Review it before you share it.");
      return;
    }
    const done = await read(answer);
    if (a !== current) return;
    if (!done.Error && a.done?.(done.Said)) return; // it is shown elsewhere
    if (done.Said) put(done.Said);
    say(done.Error ? "It failed: " + clean(done.Error) : "Done.", Boolean(done.Error));
    $("plan-do").hidden = !done.Error;
  } catch {
    if (a === current) say("The connection was lost: the audit says whether it was done.", true);
  }
}

// save hands a file to the person, whose name begins so.
function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: `${name}-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}.tar.gz` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

$("plan-do").addEventListener("click", act);
$("plan-close").addEventListener("click", () => $("plan").close());
$("plan").addEventListener("close", () => {
  if ($("plan").open) return; // it was opened again before this was heard
  asked?.abort();
  current = null;
});
