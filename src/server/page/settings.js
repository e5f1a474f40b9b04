// The panel of settings. What is left open is the model's own, which the panel shows.
import { t } from "./i18n.js";
import { apiKey, setApiKey } from "./api.js";

const kNumbers = [["temperature", 0, 2, 0.05], ["top_p", 0.001, 1, 0.01], ["top_k", 0, 1000000, 1], ["min_p", 0, 1, 0.01],
  ["repetition_penalty", 0.01, 10, 0.01], ["presence_penalty", -2, 2, 0.1], ["frequency_penalty", -2, 2, 0.1], ["max_tokens", 1, 1000000, 1],
  ["seed", 0, Number.MAX_SAFE_INTEGER, 1]];

let values = load();

function load() {
  let kept = null;
  try { kept = JSON.parse(localStorage.getItem("settings")); } catch { /* as if there were none */ }
  return kept !== null && typeof kept === "object" && !Array.isArray(kept) ? kept : {};
}
function save() {
  try { localStorage.setItem("settings", JSON.stringify(values)); } catch { /* kept until the page closes */ }
}

export function setting(name) { return values[name]; }

// The fields of a request.
export function requestFields() {
  const fields = {};
  for (const [name] of kNumbers) if (Number.isFinite(values[name])) fields[name] = values[name];
  const stop = String(values.stop || "").split("\n").filter(Boolean);
  if (stop.length) fields.stop = stop;
  if (values.think === "on" || values.think === "off") fields.chat_template_kwargs = { enable_thinking: values.think === "on" };
  if (values.logprobs) Object.assign(fields, { logprobs: true, top_logprobs: 5 });
  return fields;
}

function labelled(text, control, className = "") {
  const label = document.createElement("label");
  label.className = className;
  if (className === "check") label.append(control, text); else label.append(text, control);
  return label;
}

// What is typed counts as it is typed: the panel may be drawn anew at any time. It is then where it was.
function keepPlace(panel, draw) {
  const at = panel.contains(document.activeElement) ? document.activeElement : null;
  const top = panel.scrollTop;
  draw();
  panel.scrollTop = top;
  const again = at?.id && document.getElementById(at.id);
  if (!again) return;
  if (again.type !== "checkbox") again.value = at.value;
  again.focus({ preventScroll: true });
  if (at.tagName === "TEXTAREA") again.setSelectionRange(at.selectionStart, at.selectionEnd);
}

// `conversation` has the system prompt; `changed` is called when that has been edited.
export function renderSettings(panel, { props, conversation, changed, keyChanged }) {
  const heading = (text) => Object.assign(document.createElement("h2"), { textContent: text });
  const parts = [heading(t("system"))];
  const system = document.createElement("textarea");
  system.id = "system";
  system.rows = 4;
  system.value = conversation.system;
  system.setAttribute("aria-label", t("system"));
  system.addEventListener("input", () => { conversation.system = system.value; });
  system.addEventListener("change", () => { conversation.system = system.value; changed(); });
  parts.push(system, heading(t("sampling")));
  const defaults = props?.default_generation_settings || {};
  for (const [name, low, high, step] of kNumbers) {
    const input = document.createElement("input");
    Object.assign(input, { type: "number", id: `set-${name}`, min: low, max: high, step, value: values[name] ?? "" });
    const own = defaults[name];
    const unlimited = name === "max_tokens" && !(own > 0);
    input.placeholder = unlimited ? t("contextHolds") : own === undefined || own === null ? t("none") : t("byDefault", { value: Number.isInteger(own) ? own : Number(own).toPrecision(3).replace(/\.?0+$/, "") });
    const take = () => {
      // The step is the arrows' alone: what lies between is a value as good.
      const value = Number(input.value);
      const good = input.value !== "" && value >= low && value <= high && (step !== 1 || Number.isInteger(value));
      if (good) values[name] = value; else delete values[name];
      save();
      return good;
    };
    input.addEventListener("input", take);
    input.addEventListener("change", () => { if (!take()) input.value = ""; });
    parts.push(labelled(t(name), input));
  }
  const stop = document.createElement("textarea");
  stop.id = "set-stop";
  stop.rows = 2;
  stop.value = values.stop || "";
  stop.addEventListener("input", () => { values.stop = stop.value; save(); });
  parts.push(labelled(t("stopStrings"), stop));
  if ((props?.chat_template || "").includes("enable_thinking")) {
    const think = document.createElement("select");
    think.id = "set-think";
    for (const [value, text] of [["", t("thinkDefault")], ["on", t("thinkOn")], ["off", t("thinkOff")]]) think.append(new Option(text, value));
    think.value = values.think || "";
    think.addEventListener("change", () => { values.think = think.value; save(); });
    parts.push(labelled(t("think"), think));
  }
  parts.push(heading(t("display")));
  const logprobs = document.createElement("input");
  Object.assign(logprobs, { type: "checkbox", id: "set-logprobs", checked: Boolean(values.logprobs) });
  logprobs.addEventListener("change", () => { values.logprobs = logprobs.checked; save(); });
  parts.push(labelled(t("logprobs"), logprobs, "check"));
  const key = document.createElement("input");
  Object.assign(key, { type: "password", id: "set-key", value: apiKey(), autocomplete: "off", placeholder: t("keyNote") });
  key.addEventListener("change", () => { setApiKey(key.value.trim()); keyChanged(); });
  parts.push(labelled(t("key"), key));
  keepPlace(panel, () => panel.replaceChildren(...parts));
}
