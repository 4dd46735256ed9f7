// The commands in a text, so that each can be copied and pasted where it is read.
import { clean, h } from "/draw.js";

// What there is below the commands of zedkube. Those with an empty list take a name, or nothing.
const below = {
  status: [], doctor: [], cluster: [], logs: [], uncordon: [], kubeconfig: [], top: [], topics: [], audit: [], export: [], page: [], events: [], volumes: [], explain: [], "support-bundle": [],
  workloads: ["status", "enable", "disable"], drain: ["status", "plan", "request", "cancel", "keep-cordon", "unlock"], leave: ["plan"], nodes: ["forget", "remove"], apps: ["detach"],
  k3s: ["status", "plan", "stage", "hold", "release", "retry", "rollback", "certs"], join: ["plan", "wait"],
};
const named = ["uncordon", "unlock", "forget", "remove", "detach", "explain", "logs"]; // a name comes next
const valued = ["--op", "--reason", "--by", "-f", "-n", "-l"];
const kubectl = /^(-n|get|describe|edit|delete|apply|logs|uncordon|cordon|scale|patch|label|annotate)$/;
const prose = /^(a|and|are|as|for|from|if|in|is|it|of|on|or|says|shows|that|the|then|there|to|unless|until|which|with|withdraws)$/;

let program = "zedkube"; // with --root, where the agent has one
export const setProgram = (text) => { program = clean(text || "zedkube"); };

const unquoted = (word) => word.replace(/["').,;:]+$/, "");

// end is how many of the words after the program's name belong to the command; 0 for none: it is
// only spoken of.
function end(name, words) {
  const plain = words.map(unquoted);
  const whole = (i) => plain[i] === words[i]; // the sentence does not stop after it
  if (name === "kubectl") {
    if (!kubectl.test(plain[0])) return 0;
    let i = 1;
    while (i < words.length && whole(i - 1) && !prose.test(plain[i])) i++;
    return i;
  }
  if (!Object.hasOwn(below, plain[0])) return 0;
  let i = 1;
  if (whole(0) && below[plain[0]].includes(plain[1])) i = 2;
  for (; i < words.length && whole(i - 1) && plain[i]; i++) {
    const before = plain[i - 1];
    if (plain[i].startsWith("-") || valued.includes(before)) continue;
    if (prose.test(plain[i]) || !(named.includes(before) || /[A-Z0-9/]/.test(plain[i]))) break;
  }
  return i;
}

// command is one that can be copied. The key keeps the focus over a redraw.
export function command(text, key) {
  const code = h("code", {}, text);
  const button = h("button", {
    type: "button", class: "copy", "aria-label": "Copy " + clean(text), "data-key": key && "copy " + key, click: () => copy(code, button),
  }, "Copy");
  return h("span", { class: "command" }, code, " ", button);
}

async function copy(code, button) {
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch { // over plain HTTP from another computer browsers do not let a page write there
    getSelection().selectAllChildren(code);
    said = "Selected: press Ctrl+C";
  }
  button.textContent = said;
  document.getElementById("said").textContent = said;
  setTimeout(() => { button.textContent = "Copy"; }, 3000);
}

// withCommands is a text whose commands can be copied.
export function withCommands(text, key) {
  const s = clean(text);
  const parts = [];
  let from = 0;
  for (const found of s.matchAll(/\b(zedkube|kubectl) /g)) {
    if (found.index < from) continue;
    const begin = found.index + found[0].length;
    const words = s.slice(begin).split(" ");
    const count = end(found[1], words);
    if (!count) continue;
    const raw = words.slice(0, count).join(" ");
    const line = unquoted(raw);
    parts.push(s.slice(from, found.index), command((found[1] === "zedkube" ? program : found[1]) + " " + line, `${key} ${found.index}`));
    from = begin + line.length;
  }
  parts.push(s.slice(from));
  return parts;
}
