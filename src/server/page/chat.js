// The conversation that is shown, and the answers that are under way: one in each conversation at most.
import { t } from "./i18n.js";
import { chat as askModel } from "./api.js";
import { tokenEntry } from "./archive.js";
import { addNode, branch, families, putAtOnce, putConversation, showBranch, takeOver } from "./store.js";
import { copyText, renderMarkdown } from "./markdown.js";
import { renderTokens } from "./tokens.js";
import { requestFields } from "./settings.js";

const list = document.getElementById("messages");
const kNearEnd = 8;  // pixels from the end at which new text is followed

function toggle(set, id, on) { if (on) set.add(id); else set.delete(id); }

export class Chat {
  // `onChange`: the conversation, or whether an answer is under way, has changed. `onProblem(error)`: null when all was stored,
  // else why it was not, or the server's error.
  constructor(onChange, onProblem) {
    this.onChange = onChange;
    this.onProblem = onProblem;
    this.conversation = null;
    this.answers = new Map();  // conversation's id -> {controller, node, conversation}
    this.tokenView = new Set();  // ids of nodes shown as tokens
    this.openReasoning = new Set();  // ids of nodes whose reasoning is unfolded
    this.edits = new Map();  // id of a node -> the text in its editor
    this.following = true;  // the end is in view, and stays there as text comes
    list.addEventListener("scroll", () => { this.following = list.clientHeight > 0 ? this.atEnd() : this.following; });
    new ResizeObserver(() => { if (this.following) this.scrollDown(); }).observe(list);
    addEventListener("pagehide", () => this.saveAnswers());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.saveAnswers(); });
  }

  get running() { return this.answers.get(this.conversation?.id); }

  show(conversation) {
    if (conversation === this.conversation) { this.render(); return; }
    this.conversation = conversation;
    this.render();
    this.scrollDown();
  }

  stop(conversation = this.conversation) { this.answers.get(conversation.id)?.controller.abort(); }

  async send(text) {
    if (this.running || !text.trim()) return;
    addNode(this.conversation, this.conversation.leaf, "user", text);
    await this.answer();
  }

  async regenerate(node) {
    if (this.running) return;
    this.conversation.leaf = node.parent;
    await this.answer();
  }

  async saveEdit(node, text) {
    if (this.running || !text.trim()) return;
    this.edits.delete(node.id);
    addNode(this.conversation, node.parent, node.role, text);
    if (node.role === "user") return this.answer();
    this.save();
    this.render();
  }

  save(conversation = this.conversation) {
    const stored = putConversation(conversation).then(() => this.onProblem(null), (error) => this.onProblem(error));
    this.onChange();
    return stored;
  }

  saveAnswers() { for (const { conversation } of this.answers.values()) putAtOnce(conversation); }

  // What there is of an answer is stored every now and then: the page may be gone before its end.
  async saveSoon(answer) {
    if (answer.saving) return;
    answer.saving = true;
    const begin = performance.now();
    await putConversation(answer.conversation).catch((error) => this.onProblem(error));
    setTimeout(() => { answer.saving = false; }, Math.max(1000, 20 * (performance.now() - begin)));
  }

  // Another tab has written this conversation.
  takeOver(conversation, stored) {
    takeOver(conversation, stored, this.answers.get(conversation.id)?.node);
    if (conversation === this.conversation) this.render();
  }

  async answer() {
    const conversation = this.conversation;
    // An answer that failed before its first word was never part of the conversation.
    const spoken = branch(conversation).filter((node) => node.role === "user" || node.content || node.reasoning);
    const messages = spoken.map((node) => ({ role: node.role, content: node.content,
      ...(node.role === "assistant" && node.reasoning ? { reasoning_content: node.reasoning } : {}) }));
    if (conversation.system.trim()) messages.unshift({ role: "system", content: conversation.system });
    const node = addNode(conversation, conversation.leaf, "assistant", "");
    node.finish = "cut";  // until it is whole: a page that is closed says nothing more
    const answer = { controller: new AbortController(), node, conversation };
    this.answers.set(conversation.id, answer);
    this.save(conversation);
    this.render();
    this.scrollDown();
    const begin = performance.now();
    try {
      for await (const chunk of askModel({ messages, ...requestFields() }, answer.controller.signal)) {
        this.take(node, chunk, begin);
        this.saveSoon(answer);
      }
    } catch (error) {
      if (error.name === "AbortError") {
        node.finish = "stopped";
      } else {
        node.error = error.status ? error.message : node.content || node.reasoning ? "brokenOff" : "unreachable";
        if (!node.content && !node.reasoning) delete node.finish;
        if (error.status === 401) this.onProblem(error);
      }
    }
    this.answers.delete(conversation.id);
    this.save(conversation);
    if (this.conversation === conversation) {
      this.render();
      if (this.following) this.scrollDown();
    }
  }

  take(node, chunk, begin) {
    const choice = chunk.choices[0];
    if (choice?.delta?.reasoning_content) node.reasoning = (node.reasoning || "") + choice.delta.reasoning_content;
    if (choice?.delta?.content) {
      if (node.reasoning && !node.content) node.thought = (performance.now() - begin) / 1000;
      node.content += choice.delta.content;
    }
    for (const entry of choice?.logprobs?.content || []) (node.logprobs ??= []).push(tokenEntry(entry));
    if (choice?.finish_reason) node.finish = choice.finish_reason;
    if (chunk.timings) node.rate = chunk.timings.predicted_per_second;
    if (chunk.usage) node.usage = { prompt: chunk.usage.prompt_tokens, completion: chunk.usage.completion_tokens };
    this.renderSoon(node);
  }

  // The answer's text, at most some times a second: a long one takes its time.
  renderSoon(node) {
    if (this.pending) return;
    const wait = Math.min(5000, 40 + (this.lastRender || 0) * 4);
    this.pending = setTimeout(() => {
      this.pending = null;
      const element = list.querySelector(`[data-id="${node.id}"]`);
      if (!element) return;
      const begin = performance.now();
      this.fillAnswer(element, node);
      this.lastRender = performance.now() - begin;
      if (this.following) this.scrollDown();
    }, wait);
  }

  atEnd() { return list.scrollHeight - list.scrollTop - list.clientHeight < kNearEnd; }
  scrollDown() {
    list.scrollTop = list.scrollHeight;
    this.following = true;
  }

  // Brings the list up to date. Elements of messages that stay are kept, with their selection and what was scrolled in them, but
  // `anew`: when the language has changed.
  render(anew = false) {
    clearTimeout(this.pending);
    this.pending = null;
    const nodes = branch(this.conversation);
    this.families = families(this.conversation);
    const top = list.scrollTop;
    const at = document.activeElement;
    const article = list.contains(at) && at.closest("[data-id]");
    const focus = article ? { id: article.dataset.id, index: [...list.children].indexOf(article), action: at.dataset.action,
      from: at.selectionStart, to: at.selectionEnd } : null;
    const before = new Map(anew ? [] : [...list.children].map((element) => [element.dataset.id, element]));
    const elements = nodes.map((node) => this.message(node, before.get(node.id)));
    if (nodes.length === 0) elements.push(Object.assign(document.createElement("p"), { className: "empty", textContent: t("empty") }));
    let next = list.firstChild;
    for (const element of elements) {
      if (element === next) next = next.nextSibling; else list.insertBefore(element, next);
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
    list.setAttribute("aria-busy", Boolean(this.running));
    list.scrollTop = top;
    if (focus && document.activeElement !== at) this.focusAgain(focus);
  }

  // To where it was, or the nearest: a branch that is shown in its place, a button that may be pressed.
  focusAgain({ id, index, action, from, to }) {
    const article = list.querySelector(`[data-id="${id}"]`) || list.children[index];
    const element = article?.querySelector(action ? `[data-action="${action}"]:not(:disabled)` : "textarea") || article?.querySelector(".tools button:not(:disabled)");
    element?.focus({ preventScroll: true });
    if (element?.tagName === "TEXTAREA" && from !== undefined) element.setSelectionRange(from, to);
  }

  message(node, before) {
    const editing = this.edits.has(node.id);
    const reuse = before && Boolean(before.querySelector("textarea")) === editing;
    const element = reuse ? before : document.createElement("article");
    element.className = `message ${node.role}`;
    element.dataset.id = node.id;
    if (editing) {
      if (!reuse) this.fillEditor(element, node);
      for (const button of element.querySelectorAll("[data-action=save]")) button.disabled = Boolean(this.running);
    } else if (node.role === "user") {
      element.replaceChildren(Object.assign(document.createElement("div"), { className: "body", textContent: node.content }), this.tools(node));
    } else {
      this.fillAnswer(element, node);
    }
    return element;
  }

  fillAnswer(element, node) {
    const running = this.running?.node === node;
    const asTokens = this.tokenView.has(node.id) && Boolean(node.logprobs);
    let body = element.querySelector(":scope > .body");
    const view = asTokens ? `tokens ${node.logprobs.length}` : "text";
    if (body?.dataset.view !== view) {
      const made = Object.assign(document.createElement("div"), { className: "body" });
      if (body) body.replaceWith(made); else element.append(made);
      body = made;
      body.dataset.view = view;
      if (asTokens) renderTokens(body, node.logprobs);
    }
    if (!asTokens) renderMarkdown(body, node.content, running);
    body.classList.toggle("cursor", running);
    let details = element.querySelector(":scope > details");
    if (node.reasoning && !details) body.before(details = this.reasoning(node));
    if (node.reasoning) this.fillReasoning(details, node, running); else details?.remove();
    while (body.nextSibling) body.nextSibling.remove();
    if (node.error) body.after(Object.assign(document.createElement("p"), { className: "error", textContent: t(node.error) }));
    if (!running) element.append(this.tools(node));
  }

  reasoning(node) {
    const details = document.createElement("details");
    details.className = "reasoning";
    details.open = this.openReasoning.has(node.id);
    details.addEventListener("toggle", () => toggle(this.openReasoning, node.id, details.open));
    details.append(document.createElement("summary"), Object.assign(document.createElement("div"), { className: "text" }));
    return details;
  }

  fillReasoning(details, node, running) {
    details.firstChild.textContent = running && !node.content ? t("thinking") : node.thought ? t("thought", { seconds: node.thought.toFixed(1) }) : t("reasoned");
    const text = details.lastChild;
    if (text.firstChild && node.reasoning.startsWith(text.firstChild.data)) text.firstChild.appendData(node.reasoning.slice(text.firstChild.data.length));
    else text.textContent = node.reasoning;
  }

  button(name, action, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label ?? t(name);
    button.dataset.action = name;
    if (label) button.setAttribute("aria-label", t(name));
    button.disabled = Boolean(this.running) && ["previous", "next", "regenerate", "save"].includes(name);
    button.addEventListener("click", () => action(button));
    return button;
  }

  tools(node) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const all = this.families.get(node.parent) || [node];
    if (all.length > 1) {
      const at = all.indexOf(node);
      const go = (step) => { showBranch(this.conversation, all[at + step]); this.save(); this.render(); };
      const previous = this.button("previous", () => go(-1), "‹");
      const next = this.button("next", () => go(1), "›");
      previous.disabled ||= at === 0;
      next.disabled ||= at === all.length - 1;
      tools.append(previous, Object.assign(document.createElement("span"), { className: "branch", textContent: `${at + 1}/${all.length}` }), next);
    }
    tools.append(this.button("copy", (button) => copyText(node.content, button)));
    tools.append(this.button("edit", () => this.edit(node)));
    if (node.role === "user") return tools;
    tools.append(this.button("regenerate", () => this.regenerate(node)));
    if (node.logprobs) {
      const asTokens = this.tokenView.has(node.id);
      tools.append(this.button(asTokens ? "text" : "tokens", () => {
        toggle(this.tokenView, node.id, !asTokens);
        this.render();
      }));
    }
    const notes = node.content || node.reasoning || node.error ? [] : [t("noText")];
    if (node.usage) notes.push(t("stats", node.usage));
    if (node.rate) notes.push(t("speedNote", { rate: node.rate.toFixed(1) }));
    if (["length", "stopped", "cut"].includes(node.finish)) notes.push(t(node.finish));
    tools.append(Object.assign(document.createElement("span"), { className: "stats", textContent: notes.join(" · ") }));
    return tools;
  }

  edit(node) {
    this.edits.set(node.id, node.content);
    this.render();
    const area = list.querySelector(`[data-id="${node.id}"] textarea`);
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  fillEditor(element, node) {
    const area = document.createElement("textarea");
    area.value = this.edits.get(node.id);
    area.rows = Math.min(20, Math.max(3, area.value.split("\n").length));
    area.setAttribute("aria-label", t("edit"));
    const cancel = () => { this.edits.delete(node.id); this.render(); };
    area.addEventListener("input", () => this.edits.set(node.id, area.value));
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.saveEdit(node, area.value);
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();  // it stops no answer
      cancel();
    });
    const row = document.createElement("div");
    row.className = "tools";
    row.append(this.button("save", () => this.saveEdit(node, area.value)), this.button("cancel", cancel));
    element.replaceChildren(area, row);
  }
}
