// What the page asks of its agent. Over loopback the agent wants the reading
// token with it: it comes in the fragment of the address, which no browser sends,
// or from the field at the top, and is kept for this tab alone.
import { clean } from "/draw.js";

const kept = "zedkube-token";
const $ = (id) => document.getElementById(id);
let told = () => {}; // called when somebody has entered a token

const given = /^#token=([A-Za-z0-9]+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem(kept, given[1]);
  history.replaceState(null, "", location.pathname);
}

// ask fetches a path. An answer that wants the token shows the field for it.
export async function ask(path, signal, { method, headers, body } = {}) {
  const token = sessionStorage.getItem(kept);
  const answer = await fetch(path, { signal, method, body, cache: "no-store", headers: { ...headers, ...(token && { Authorization: "Bearer " + token }) } });
  const wanted = answer.status === 401 || answer.status === 429;
  if (wanted && sessionStorage.getItem(kept) === token) {
    sessionStorage.removeItem(kept);
    $("token-why").textContent = token ? "The agent does not accept this token: it creates a new one at each start." : "";
  }
  $("token").hidden = !wanted;
  return answer;
}

// events are what a stream of events says, as [name, data].
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const all = (rest + value).split("\n\n");
    rest = all.pop();
    for (const text of all) {
      const name = /^event: (.*)$/m.exec(text), data = /^data: (.*)$/m.exec(text);
      if (name && data) yield [name[1], JSON.parse(data[1])];
    }
  }
}

// whenTold calls act after somebody has entered a token.
export function whenTold(act) { told = act; }

$("token-form").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("token-text").value.trim().replace(/^.*token=/, ""); // the whole address is as good
  $("token-text").value = "";
  if (!/^[A-Za-z0-9]+$/.test(text)) return void ($("token-why").textContent = "This is not a token: " + clean(text.slice(0, 20)));
  sessionStorage.setItem(kept, text);
  $("token").hidden = true;
  told();
});
