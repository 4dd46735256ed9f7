// The log of an application: read only while somebody wants it.
import { ask } from "/ask.js";
import { clean } from "/draw.js";
import { fold } from "/fold.js";

const most = 2000; // lines that are kept
const longest = 20000; // of what has no end of line yet

const $ = (id) => document.getElementById(id);
let running = null;

// offerApps lists the applications to choose from; what is chosen stays chosen.
export function offerApps(apps) {
  const select = $("logs-app");
  const wanted = apps.map((a) => a.UUID + " " + a.Name).join("\n");
  if (select.dataset.shown === wanted) return;
  select.dataset.shown = wanted;
  const chosen = select.value;
  select.replaceChildren(...apps.map((a) => {
    const o = document.createElement("option");
    o.value = a.UUID;
    o.textContent = clean(a.Name);
    return o;
  }));
  if (apps.some((a) => a.UUID === chosen)) select.value = chosen;
}

// showLogs begins with one application.
export function showLogs(uuid) {
  $("logs-app").value = uuid;
  fold("logs", false);
  $("logs").scrollIntoView({ behavior: "instant" }); // while a page moves, a press on Stop misses it
  $("logs-out").focus({ preventScroll: true });
  read(uuid, $("logs-follow").checked);
}

const say = (text) => { $("logs-state").textContent = text; };

async function read(app, follow) {
  running?.abort();
  const me = new AbortController();
  running = me;
  $("logs").classList.add("used");
  $("logs-out").replaceChildren();
  $("logs-stop").disabled = false;
  say("Asking");
  try {
    const answer = await ask(`/api/logs?app=${encodeURIComponent(app)}&follow=${follow ? 1 : 0}`, me.signal);
    if (!answer.ok) return say((await answer.text()).slice(0, 300).trim());
    say(follow ? "Following" : "Reading");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      const all = (rest + (value ?? "")).split("\n");
      rest = done ? "" : all.pop();
      if (rest.length > longest) rest = rest.slice(0, longest);
      append(all.filter((x) => x));
      if (done) return say("Ended");
    }
  } catch (e) {
    if (me.signal.aborted) { if (running === me) say("Stopped"); } else say("The connection is lost. Press Show to start again.");
  } finally {
    if (running === me) { running = null; $("logs-stop").disabled = true; }
  }
}

// append puts in lines. The first character of each says who speaks: the
// application, or the agent about it.
function append(all) {
  const out = $("logs-out");
  const atEnd = out.scrollHeight - out.scrollTop - out.clientHeight < 40;
  const made = document.createDocumentFragment();
  for (const text of all.slice(-most)) {
    const line = document.createElement("span");
    if (text[0] === "!") line.className = "page";
    line.textContent = (text[0] === "!" ? "-- " : "") + text.slice(1).replace(/^((?:\S+\/\S+ )?)\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)\S* /, "$1$2 ") + "\n";
    made.append(line);
  }
  out.append(made);
  while (out.childElementCount > most) out.firstChild.remove();
  if (atEnd) out.scrollTop = out.scrollHeight;
}

$("logs-form").addEventListener("submit", (e) => {
  e.preventDefault();
  if ($("logs-app").value) read($("logs-app").value, $("logs-follow").checked); else say("This device has no application.");
});
$("logs-stop").addEventListener("click", () => running?.abort());
$("logs-wrap").addEventListener("change", (e) => $("logs-out").classList.toggle("wrap", e.target.checked));
