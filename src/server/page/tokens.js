// The token view: each token coloured by how unsure the model was of it, with its alternatives.
import { t } from "./i18n.js";

const tip = document.getElementById("token-tip");

// A piece of a character is shown as its bytes.
function text(entry) { return entry.bytes ? `⟨${entry.bytes.map((byte) => Math.floor(byte).toString(16).padStart(2, "0")).join(" ")}⟩` : entry.token; }
function shown(entry) { return JSON.stringify(text(entry)).slice(1, -1); }
function percent(logprob) { return `${(100 * Math.exp(logprob)).toFixed(2)} %`; }

function fillTip(entry) {
  const table = document.createElement("table");
  const row = (cells, kind) => {
    const tr = table.insertRow();
    for (const cell of cells) tr.append(Object.assign(document.createElement(kind), { textContent: cell }));
  };
  row([t("tokens"), t("id"), t("probability")], "th");
  const others = entry.top_logprobs.filter((other) => other.id !== entry.id);
  for (const one of [entry, ...others]) row([shown(one), one.id ?? "", percent(one.logprob)], "td");
  tip.replaceChildren(table);
}

function place(element) {
  const box = element.getBoundingClientRect();
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 4))}px`;
  const below = box.bottom + 4;
  tip.style.top = `${below + tip.offsetHeight > innerHeight ? Math.max(4, box.top - tip.offsetHeight - 4) : below}px`;
}

// One stop for the Tab key: the arrows go from token to token.
function step(event) {
  const other = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
  const to = other && event.target[other];
  if (!to) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

export function renderTokens(element, entries) {
  element.classList.add("plain-text");
  const entryOf = new WeakMap();
  const show = (event) => {
    if (!entryOf.has(event.target)) return;
    fillTip(entryOf.get(event.target));
    place(event.target);
  };
  for (const come of ["mouseover", "focusin"]) element.addEventListener(come, show);
  for (const leave of ["mouseout", "focusout"]) element.addEventListener(leave, () => { tip.hidden = true; });
  element.addEventListener("keydown", step);
  element.replaceChildren(...entries.map((entry, i) => {
    const span = document.createElement("span");
    span.className = "token";
    span.tabIndex = i === 0 ? 0 : -1;
    span.textContent = text(entry);
    span.style.setProperty("--doubt", Math.round(60 * (1 - Math.exp(entry.logprob))));
    entryOf.set(span, entry);
    return span;
  }));
}
