// Puts the page together: conversations at the side, the two tabs, language, theme, settings, keyboard.
import { currentLanguage, preferredLanguage, setLanguage, t } from "./i18n.js";
import { apiKey, props as readProps } from "./api.js";
import { exported, imported, kMostBytes } from "./archive.js";
import { allConversations, listenToTabs, newConversation, openStore, putConversation, removeConversation, storedConversation } from "./store.js";
import { missingLibraries } from "./markdown.js";
import { Chat } from "./chat.js";
import { EngineView } from "./engine.js";
import { renderSettings } from "./settings.js";

const $ = (id) => document.getElementById(id);
const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* until the page closes */ } };

let props = null;
let again = null;
let noticeEnd = null;
let listPending = null;
let conversations = [];
const engine = new EngineView();
const chat = new Chat(() => { renderList(); renderComposer(); }, (error) => {
  if (error?.status) failed(error);
  else if (error) notice(t("notKept", { why: error.name }), true, "store");
  else if ($("notice").dataset.kind === "store") notice("");
});

function notice(text, bad = false, kind = "") {
  $("notice").textContent = text;
  $("notice").classList.toggle("bad", bad);
  $("notice").hidden = !text;
  $("notice").dataset.kind = kind;
  clearTimeout(noticeEnd);
  if (!kind && !bad) noticeEnd = setTimeout(() => { $("notice").hidden = true; }, 8000);
}

// An error of the server; null when it answers again. Where it may come back by itself it is asked until it does.
function failed(error) {
  const told = $("notice").dataset.kind === "server";
  if (!error) { if (told) notice(""); return; }
  const loading = error.code === "loading";
  notice(loading ? t("loading") : error.status === 401 ? t(apiKey() ? "wrongKey" : "needKey") : error.status ? error.message : t("unreachable"),
    !loading, "server");
  if (error.status !== 401) {
    clearTimeout(again);
    again = setTimeout(loadProps, error.status === 503 ? 1000 : 3000);
  } else if (!told) {
    openSettings(true);
    $("set-key").focus();
  }
}

async function loadProps() {
  try {
    props = await readProps();
    $("model").textContent = `${props.models[0]} · ${props.device}`;
    const missing = missingLibraries();
    failed(null);
    if (missing.length) notice(t("plain", { libraries: missing.join(", ") }), false, "plain");
  } catch (error) {
    failed(error);
  }
  renderPanel();
}

function renderWords() {
  for (const [id, name] of [["tab-chat", "chat"], ["tab-engine", "engine"], ["new-chat", "newChat"], ["export", "exportAll"], ["import", "importAll"],
    ["send", "send"], ["stop", "stop"], ["language", "language"], ["theme", "theme"], ["settings-button", "settings"]]) $(id).textContent = t(name);
  $("input").placeholder = t(narrow() ? "placeholderShort" : "placeholder");
  $("input").setAttribute("aria-label", t("placeholder"));
  $("menu").setAttribute("aria-label", t("chat"));
}

function renderList() {
  if (chat.conversation && chat.conversation.leaf && !chat.conversation.removed && !conversations.includes(chat.conversation)) conversations.push(chat.conversation);
  conversations.sort((a, b) => b.time - a.time);
  document.title = chat.conversation?.title ? `${chat.conversation.title} · qwench` : "qwench";
  $("conversations").replaceChildren(...conversations.map((conversation) => {
    const item = document.createElement("li");
    const title = conversation.title || t("untitled");
    if (conversation === chat.conversation) item.setAttribute("aria-current", "true");
    const open = Object.assign(document.createElement("button"), { className: "open", type: "button", textContent: title, title });
    open.addEventListener("click", () => show(conversation));
    const remove = Object.assign(document.createElement("button"), { className: "remove", type: "button", textContent: "×" });
    remove.setAttribute("aria-label", `${t("remove")}: ${title}`);
    remove.addEventListener("click", async () => {
      if (!confirm(t("removeSure", { title }))) return;
      forget(conversation);
      await removeConversation(conversation.id).catch((error) => notice(t("notKept", { why: error.name }), true, "store"));
    });
    if (chat.answers.has(conversation.id)) {
      const mark = Object.assign(document.createElement("span"), { className: "answering", textContent: "●", title: t("answering") });
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", t("answering"));
      item.append(open, mark, remove);
    } else {
      item.append(open, remove);
    }
    return item;
  }));
}

// A conversation that was removed, here or in another tab.
function forget(conversation) {
  conversation.removed = true;  // an answer that still streams does not bring it back
  chat.stop(conversation);
  conversations = conversations.filter((other) => other !== conversation);
  if (conversation === chat.conversation) show(newConversation()); else renderList();
}

async function heard({ changed, removed }) {
  const mine = conversations.find((conversation) => conversation.id === (changed ?? removed));
  if (removed) { if (mine) forget(mine); return; }
  const stored = await storedConversation(changed);
  if (!stored) return;
  if (mine) chat.takeOver(mine, stored); else if (!conversations.some((conversation) => conversation.id === changed)) conversations.push(stored);
  listPending ??= setTimeout(() => { listPending = null; renderList(); }, 100);
}

function renderComposer() {
  const running = Boolean(chat.running);
  $("send").hidden = running;
  $("stop").hidden = !running;
}

function renderPanel() {
  if ($("settings").hidden) return;
  renderSettings($("settings"), { props, conversation: chat.conversation, changed: () => { if (chat.conversation.leaf) chat.save(); }, keyChanged: loadProps });
}

function openSettings(open) {
  if ($("settings").hidden !== open) return;
  $("settings").hidden = !open;
  $("settings-button").setAttribute("aria-expanded", open);
  if (open) openSide(false);
  renderPanel();
}

function openSide(open) {
  if (open && narrow()) openSettings(false);
  $("side").classList.toggle("open", open);
  $("menu").setAttribute("aria-expanded", open);
}

function show(conversation) {
  chat.show(conversation);
  openSide(false);
  selectTab("chat");
  renderList();
  renderComposer();
  renderPanel();
  if (matchMedia("(pointer: fine)").matches) $("input").focus();  // a phone's keyboard would cover the half of it
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

function keepDraft() { try { sessionStorage.setItem("draft", $("input").value); } catch { /* until the page closes */ } }

function send() {
  const text = $("input").value;
  if (!text.trim() || chat.running) return;
  $("input").value = "";
  fitInput();
  keepDraft();
  chat.send(text);
}

function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  keep("theme", theme || "");
}

function narrow() { return matchMedia("(max-width: 760px)").matches; }  // as in page.css

// Closes what lies over the rest, else stops the answer.
function escape() {
  if (!$("token-tip").hidden) $("token-tip").hidden = true;
  else if ($("side").classList.contains("open")) { openSide(false); $("menu").focus(); }
  else if (narrow() && !$("settings").hidden) { openSettings(false); $("settings-button").focus(); }
  else if (chat.running) chat.stop();
}

function listen() {
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
  $("input").addEventListener("input", () => { fitInput(); keepDraft(); });
  $("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;  // an input method's Enter chooses a word
    event.preventDefault();
    send();
  });
  $("stop").addEventListener("click", () => chat.stop());
  $("new-chat").addEventListener("click", () => show(newConversation()));
  $("menu").addEventListener("click", () => openSide(!$("side").classList.contains("open")));
  $("settings-button").addEventListener("click", () => openSettings($("settings").hidden));
  for (const tab of ["chat", "engine"]) {
    $(`tab-${tab}`).addEventListener("click", () => selectTab(tab));
    $(tab).addEventListener("pointerdown", () => { openSide(false); if (narrow()) openSettings(false); });
  }
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
      if (file.size > kMostBytes) throw new Error(t("tooLarge"));
      const added = imported(await file.text());
      conversations.push(...added);
      if (added.length) show(added.reduce((newest, other) => (other.time > newest.time ? other : newest)));
      notice(t("imported", { count: added.length }));
      for (const conversation of added) await putConversation(conversation).catch((error) => notice(t("notKept", { why: error.name }), true, "store"));
    } catch (error) {
      notice(t("notImported", { why: error.message }), true);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) escape();
    if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") { event.preventDefault(); show(newConversation()); }
  });
  addEventListener("resize", () => { renderWords(); engine.draw(); });
}

function renderAll() {
  renderWords();
  renderList();
  chat.render(true);
  renderPanel();
  if (!$("engine").hidden) engine.build();
}

setLanguage(stored("language") || preferredLanguage());
setTheme(stored("theme"));
renderWords();
listen();
if (!await openStore()) notice(t("noStore"), true);
conversations = await allConversations();
listenToTabs(heard);
try { $("input").value = sessionStorage.getItem("draft") || ""; } catch { /* nothing was kept */ }
show(conversations.sort((a, b) => b.time - a.time)[0] || newConversation());
fitInput();
await loadProps();
