// Puts the page together: conversations at the side, the two tabs, language, theme, settings, keyboard.
import { currentLanguage, preferredLanguage, setLanguage, t } from "./i18n.js";
import { props as readProps } from "./api.js";
import { allConversations, exported, imported, newConversation, openStore, putConversation, removeConversation } from "./store.js";
import { missingLibraries } from "./markdown.js";
import { Chat } from "./chat.js";
import { EngineView } from "./engine.js";
import { renderSettings } from "./settings.js";

const $ = (id) => document.getElementById(id);
const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* until the page closes */ } };

let props = null;
let conversations = [];
const engine = new EngineView();
const chat = new Chat(() => { renderList(); renderComposer(); });

function notice(text, bad = false) {
  $("notice").textContent = text;
  $("notice").classList.toggle("bad", bad);
  $("notice").hidden = !text;
}

function failed(error) { notice(error.status === 401 ? t("needKey") : error.status ? error.message : t("unreachable"), true); }

async function loadProps() {
  try {
    props = await readProps();
    $("model").textContent = `${props.models[0]} · ${props.device}`;
    const missing = missingLibraries();
    notice(missing.length ? t("plain", { libraries: missing.join(", ") }) : "");
  } catch (error) {
    failed(error);
    if (error.status === 503) setTimeout(loadProps, 1000);
  }
  renderPanel();
}

function renderWords() {
  for (const [id, name] of [["tab-chat", "chat"], ["tab-engine", "engine"], ["new-chat", "newChat"], ["export", "exportAll"], ["import", "importAll"],
    ["send", "send"], ["stop", "stop"], ["language", "language"], ["theme", "theme"], ["settings-button", "settings"]]) $(id).textContent = t(name);
  $("input").placeholder = t("placeholder");
  $("input").setAttribute("aria-label", t("placeholder"));
  $("menu").setAttribute("aria-label", t("chat"));
}

function renderList() {
  if (chat.conversation && chat.conversation.leaf && !conversations.includes(chat.conversation)) conversations.unshift(chat.conversation);
  $("conversations").replaceChildren(...conversations.map((conversation) => {
    const item = document.createElement("li");
    item.setAttribute("aria-current", conversation === chat.conversation);
    const open = Object.assign(document.createElement("button"), { className: "open", type: "button", textContent: conversation.title || t("untitled") });
    open.addEventListener("click", () => show(conversation));
    const remove = Object.assign(document.createElement("button"), { className: "remove", type: "button", textContent: "×" });
    remove.setAttribute("aria-label", t("remove"));
    remove.addEventListener("click", async () => {
      if (!confirm(t("removeSure", { title: conversation.title || t("untitled") }))) return;
      conversation.removed = true;  // an answer that still streams does not bring it back
      await removeConversation(conversation.id);
      conversations = conversations.filter((other) => other !== conversation);
      if (conversation === chat.conversation) show(newConversation()); else renderList();
    });
    item.append(open, remove);
    return item;
  }));
}

function renderComposer() {
  const running = Boolean(chat.running);
  $("send").hidden = running;
  $("stop").hidden = !running;
}

function renderPanel() {
  if ($("settings").hidden) return;
  renderSettings($("settings"), { props, conversation: chat.conversation, changed: () => { if (chat.conversation.leaf) putConversation(chat.conversation); }, keyChanged: loadProps });
}

function show(conversation) {
  chat.show(conversation);
  $("side").classList.remove("open");
  renderList();
  renderComposer();
  renderPanel();
  $("messages").scrollTop = $("messages").scrollHeight;
  $("input").focus();
}

function selectTab(name) {
  for (const tab of ["chat", "engine"]) {
    $(tab).hidden = tab !== name;
    $(`tab-${tab}`).setAttribute("aria-selected", tab === name);
  }
  if (name === "engine") engine.open(failed); else engine.close();
}

function fitInput() {
  $("input").style.height = "auto";
  $("input").style.height = `${$("input").scrollHeight + 2}px`;
}

function send() {
  const text = $("input").value;
  if (!text.trim() || chat.running) return;
  $("input").value = "";
  fitInput();
  chat.send(text);
}

function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  keep("theme", theme || "");
}

function listen() {
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
  $("input").addEventListener("input", fitInput);
  $("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;  // an input method's Enter chooses a word
    event.preventDefault();
    send();
  });
  $("stop").addEventListener("click", () => chat.stop());
  $("new-chat").addEventListener("click", () => show(newConversation()));
  $("menu").addEventListener("click", () => $("menu").setAttribute("aria-expanded", $("side").classList.toggle("open")));
  $("settings-button").addEventListener("click", () => {
    $("settings").hidden = !$("settings").hidden;
    $("settings-button").setAttribute("aria-expanded", !$("settings").hidden);
    renderPanel();
  });
  for (const tab of ["chat", "engine"]) $(`tab-${tab}`).addEventListener("click", () => selectTab(tab));
  $("language").addEventListener("click", () => {
    setLanguage(currentLanguage() === "zh" ? "en" : "zh");
    keep("language", currentLanguage());
    renderAll();
  });
  $("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    setTheme(dark ? "light" : "dark");
    engine.draw();
  });
  $("export").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([exported(conversations)], { type: "application/json" }));
    link.download = "qwench-conversations.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", async () => {
    const file = $("import-file").files[0];
    $("import-file").value = "";
    if (!file) return;
    try {
      const added = imported(await file.text());
      for (const conversation of added) await putConversation(conversation);
      conversations = await allConversations();
      show(conversations.find((conversation) => conversation.id === added[0]?.id) || newConversation());
      notice(t("imported", { count: added.length }));
    } catch (error) {
      notice(t("notImported", { why: error.message }), true);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chat.running) chat.stop();
    if (event.key === "Escape") { $("side").classList.remove("open"); $("token-tip").hidden = true; }
    if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") { event.preventDefault(); show(newConversation()); }
  });
  addEventListener("resize", () => engine.draw());
}

function renderAll() {
  renderWords();
  renderList();
  chat.render();
  renderPanel();
  if (!$("engine").hidden) engine.build();
}

setLanguage(stored("language") || preferredLanguage());
setTheme(stored("theme"));
renderWords();
listen();
if (!await openStore()) notice(t("noStore"), true);
conversations = await allConversations();
show(conversations[0] || newConversation());
await loadProps();
