// Parts that can be folded: on a phone all but the first are at the beginning.
import { h } from "/draw.js";

const open = ["problems", "drain", "nodes", "apps"];

// isFolded reports whether a part shows its heading alone.
export const isFolded = (id) => document.getElementById(id).classList.contains("folded");

// fold folds a part, or unfolds it.
export function fold(id, folded) {
  const section = document.getElementById(id);
  section.classList.toggle("folded", folded);
  section.querySelector("h2 button").setAttribute("aria-expanded", String(!folded));
  section.dispatchEvent(new Event("fold"));
}

// foldable makes a button of each heading. A link to a part unfolds it.
export function foldable() {
  const phone = matchMedia("(max-width: 760px)").matches;
  for (const section of document.querySelectorAll("main > section")) {
    const head = section.querySelector("h2");
    head.replaceChildren(h("button", { type: "button", click: () => fold(section.id, !isFolded(section.id)) }, head.textContent));
    fold(section.id, phone && !open.includes(section.id) && location.hash !== "#" + section.id);
  }
  for (const link of document.querySelectorAll("nav a")) link.addEventListener("click", () => fold(link.hash.slice(1), false));
}
