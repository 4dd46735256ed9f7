// The page: what it hears from the agent, and what it says when it hears nothing.
import { setClock, now, span, clock, tick, when, clean, h } from "/draw.js";
import { parts } from "/parts.js";
import { measured } from "/plots.js";
import { offerApps, showLogs } from "/logs.js";
import { watchAudit } from "/audit.js";
import { watchCluster } from "/cluster.js";
import { watchEdge } from "/edge.js";
import { ask, events, whenTold } from "/ask.js";
import { foldable } from "/fold.js";
import { loadActions } from "/actions.js";

const $ = (id) => document.getElementById(id);
const silence = 40000; // the agent gives a sign every 15 s
const pause = 60000; // a page that nobody sees asks for nothing
const stuck = 30000; // how old what was read may be

let source = null;
let heardAt = 0; // by this computer's clock
let lostAt = 0; // 0 while connected
let trouble = "";
let readAt = 0; // by the device's clock
let again = 0;
let title = "zedkube";
let refused = ""; // why the agent does not tell
const token = "The agent requires its token";

const acts = {
  beat: (b) => { setClock(b.Now); readAt = when(b.ReadAt); },
  overview: (o) => { trouble = ""; draw(o); },
  trouble: (text) => { trouble = clean(text); },
  metrics: measured,
};

// connect listens until the agent ends it. One that ended in order, such as one
// that made room for another page, is asked for again at once.
async function connect() {
  clearTimeout(again);
  source?.abort();
  const me = new AbortController();
  source = me;
  let ended = false;
  try {
    const answer = await ask("/api/events", me.signal);
    refused = answer.ok ? "" : answer.status === 401 || answer.status === 429 ? token : clean((await answer.text()).slice(0, 300));
    if (answer.ok) {
      loadActions();
      for await (const [name, data] of events(answer.body)) {
        if (source !== me) return;
        heard();
        acts[name]?.(data);
      }
      ended = true;
    }
  } catch {
    refused = "";
  }
  if (source !== me) return;
  if (!ended) lost();
  again = setTimeout(connect, ended ? 1000 : refused ? 5000 : 2000);
}

function heard() { heardAt = Date.now(); lostAt = 0; say(); }
function lost() { lostAt ||= heardAt || Date.now(); say(); }

// say tells how far what is shown can be trusted. The sentence that is read out
// changes only with the state, not with the seconds.
function say() {
  let what = "", age = "", state = "Live";
  if (refused) {
    state = refused === token ? "Token required" : "Refused"; what = refused; age = heardAt ? `(${span(Date.now() - lostAt)} ago).` : "";
  } else if (lostAt) {
    state = heardAt ? "Connection lost" : "No answer yet";
    what = heardAt
      ? `No answer from the agent: it has stopped, or the connection is lost. The data shown is from ${clock(heardAt + (now() - Date.now()))}`
      : "No answer from the agent: it is not running, or serves its maximum number of pages";
    age = `(${span(Date.now() - lostAt)} ago). Trying again.`;
  } else if (trouble) {
    state = "Trouble"; what = trouble;
  } else if (!source) {
    state = "Paused"; what = "This page was not visible, so it stopped updating"; age = `(${span(Date.now() - heardAt)} ago).`;
  } else if (readAt && now() - readAt > stuck + 15000) {
    state = "Old"; what = "The agent is running, but reading its files takes too long"; age = `(for ${span(now() - readAt)}).`;
  }
  put("state", heardAt || lostAt ? state : "Contacting the agent");
  const shown = what ? `${state} - ${title}` : title; // who has the page in another tab sees that it is old
  if (document.title !== shown) document.title = shown;
  put("state-age", heardAt ? `· device time ${clock(now())}` : "");
  put("old-what", what);
  put("old-age", age);
  $("old").hidden = !what;
  document.body.classList.toggle("old", what !== "");
}

function put(id, text) { if ($(id).textContent !== text) $(id).textContent = text; }

const drawn = new Map();

// draw redraws the parts whose content has changed; what has the focus keeps it.
function draw(o) {
  put("name", clean(o.Node?.Name || o.Node?.DeviceName || "zedkube"));
  const n = (o.Problems ?? []).length;
  title = (n ? `(${n}) ` : "") + clean(o.Node?.Name || "this node") + " - zedkube";
  say();
  offerApps(o.Apps?.List ?? []);
  for (const [id, of, make] of parts(showLogs)) {
    const content = JSON.stringify(of(o));
    if (drawn.get(id) === content) continue;
    drawn.set(id, content);
    const box = document.querySelector(`#${id} > div`);
    const key = box.contains(document.activeElement) && document.activeElement.dataset.key;
    let made;
    try {
      made = make(o);
    } catch (e) {
      made = [h("p", { class: "bad" }, "This part cannot be drawn: ", e.message)];
    }
    box.replaceChildren(...made.filter((x) => x));
    if (key) [...box.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key)?.focus();
  }
  watchEdge();
}

let unseen = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(unseen);
  if (document.hidden) unseen = setTimeout(() => { clearTimeout(again); source?.abort(); source = null; say(); }, pause);
  else if (!source) connect();
});

setInterval(() => {
  if (source && !lostAt && heardAt && Date.now() - heardAt > silence) { lost(); connect(); }
  say();
  tick();
}, 1000);

foldable();
whenTold(connect);
connect();
watchAudit();
watchCluster();
