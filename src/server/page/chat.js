// The conversation that is shown, and the answer that is under way.
import { t } from "./i18n.js";
import { chat as askModel } from "./api.js";
import { addNode, branch, putConversation, showBranch, siblings } from "./store.js";
import { copyText, renderMarkdown } from "./markdown.js";
import { renderTokens } from "./tokens.js";
import { requestFields } from "./settings.js";

const list = document.getElementById("messages");

export class Chat {
  constructor(onChange) {
    this.onChange = onChange;  // the conversation, or whether an answer is under way, has changed
    this.conversation = null;
    this.running = null;  // {controller, node}
    this.tokenView = new Set();  // ids of nodes shown as tokens
    this.editing = null;
  }

  show(conversation) {
    this.stop();
    this.conversation = conversation;
    this.editing = null;
    this.render();
  }

  stop() { this.running?.controller.abort(); }

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
    this.editing = null;
    addNode(this.conversation, node.parent, node.role, text);
    if (node.role === "user") return this.answer();
    this.save();
    this.render();
  }

  save() { putConversation(this.conversation).catch(() => {}); this.onChange(); }

  async answer() {
    const conversation = this.conversation;
    // An answer that failed before its first word was never part of the conversation.
    const spoken = branch(conversation).filter((node) => node.role === "user" || node.content || node.reasoning);
    const messages = spoken.map((node) => ({ role: node.role, content: node.content,
      ...(node.role === "assistant" && node.reasoning ? { reasoning_content: node.reasoning } : {}) }));
    if (conversation.system.trim()) messages.unshift({ role: "system", content: conversation.system });
    const node = addNode(conversation, conversation.leaf, "assistant", "");
    const controller = new AbortController();
    this.running = { controller, node };
    this.save();
    this.render();
    this.scrollDown();
    const begin = performance.now();
    try {
      for await (const chunk of askModel({ messages, ...requestFields() }, controller.signal)) this.take(node, chunk, begin);
    } catch (error) {
      if (error.name === "AbortError") node.finish = "stopped";
      else node.error = error.status ? error.message : t("unreachable");
    }
    this.running = null;
    if (this.conversation === conversation) {
      this.save();
      this.render();
    } else {
      if (!conversation.removed) putConversation(conversation).catch(() => {});
      this.onChange();
      if (this.editing === null) this.render();  // its buttons waited
    }
  }

  take(node, chunk, begin) {
    const choice = chunk.choices[0];
    if (choice?.delta?.reasoning_content) node.reasoning = (node.reasoning || "") + choice.delta.reasoning_content;
    if (choice?.delta?.content) {
      if (node.reasoning && !node.content) node.thought = (performance.now() - begin) / 1000;
      node.content += choice.delta.content;
    }
    if (choice?.logprobs?.content) (node.logprobs ??= []).push(...choice.logprobs.content);
    if (choice?.finish_reason) node.finish = choice.finish_reason;
    if (chunk.timings) node.rate = chunk.timings.predicted_per_second;
    if (chunk.usage) node.usage = { prompt: chunk.usage.prompt_tokens, completion: chunk.usage.completion_tokens };
    this.renderSoon(node);
  }

  // The answer's text, at most some times a second: a long one takes its time.
  renderSoon(node) {
    if (this.pending) return;
    const wait = Math.min(1000, 40 + (this.lastRender || 0) * 4);
    this.pending = setTimeout(() => {
      this.pending = null;
      const element = list.querySelector(`[data-id="${node.id}"]`);
      if (!element) return;
      const begin = performance.now();
      const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
      this.fillAnswer(element, node);
      this.lastRender = performance.now() - begin;
      if (atEnd) this.scrollDown();
    }, wait);
  }

  scrollDown() { list.scrollTop = list.scrollHeight; }

  render() {
    clearTimeout(this.pending);
    this.pending = null;
    const nodes = branch(this.conversation);
    const top = list.scrollTop;
    if (nodes.length === 0) {
      list.replaceChildren(Object.assign(document.createElement("p"), { className: "empty", textContent: t("empty") }));
      return;
    }
    list.replaceChildren(...nodes.map((node) => this.message(node)));
    list.scrollTop = top;
  }

  message(node) {
    const element = document.createElement("article");
    element.className = `message ${node.role}`;
    element.dataset.id = node.id;
    if (this.editing === node.id) {
      this.fillEditor(element, node);
    } else if (node.role === "user") {
      element.append(Object.assign(document.createElement("div"), { className: "body", textContent: node.content }), this.tools(node));
    } else {
      this.fillAnswer(element, node);
    }
    return element;
  }

  fillAnswer(element, node) {
    const running = this.running?.node === node;
    const parts = [];
    if (node.reasoning) parts.push(this.reasoning(element, node, running));
    const body = document.createElement("div");
    body.className = "body";
    if (this.tokenView.has(node.id) && node.logprobs) renderTokens(body, node.logprobs);
    else renderMarkdown(body, node.content);
    if (running) body.classList.add("cursor");
    parts.push(body);
    if (node.error) parts.push(Object.assign(document.createElement("p"), { className: "error", textContent: node.error }));
    if (!running) parts.push(this.tools(node));
    element.replaceChildren(...parts);
  }

  reasoning(element, node, running) {
    const open = element.querySelector("details.reasoning")?.open ?? false;
    const details = document.createElement("details");
    details.className = "reasoning";
    details.open = open;
    const summary = document.createElement("summary");
    summary.textContent = running && !node.content ? t("thinking") : node.thought ? t("thought", { seconds: node.thought.toFixed(1) }) : t("reasoned");
    details.append(summary, Object.assign(document.createElement("div"), { className: "text", textContent: node.reasoning }));
    return details;
  }

  button(name, action, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label ?? t(name);
    button.dataset.action = name;
    if (label) button.setAttribute("aria-label", t(name));
    button.disabled = Boolean(this.running);
    button.addEventListener("click", () => action(button));
    return button;
  }

  tools(node) {
    const tools = document.createElement("div");
    tools.className = "tools";
    const all = siblings(this.conversation, node);
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
    tools.append(this.button("edit", () => { this.editing = node.id; this.render(); }));
    if (node.role === "user") return tools;
    tools.append(this.button("regenerate", () => this.regenerate(node)));
    if (node.logprobs) {
      const asTokens = this.tokenView.has(node.id);
      tools.append(this.button(asTokens ? "text" : "tokens", () => {
        if (asTokens) this.tokenView.delete(node.id); else this.tokenView.add(node.id);
        this.render();
      }));
    }
    const notes = [];
    if (node.usage) notes.push(t("stats", { ...node.usage, rate: (node.rate || 0).toFixed(1) }));
    if (node.finish === "length") notes.push(t("length"));
    if (node.finish === "stopped") notes.push(t("stopped"));
    tools.append(Object.assign(document.createElement("span"), { className: "stats", textContent: notes.join(" · ") }));
    return tools;
  }

  fillEditor(element, node) {
    const area = document.createElement("textarea");
    area.value = node.content;
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") cancel();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.saveEdit(node, area.value);
    });
    const cancel = () => { this.editing = null; this.render(); };
    const row = document.createElement("div");
    row.className = "tools";
    row.append(this.button("save", () => this.saveEdit(node, area.value)), this.button("cancel", cancel));
    element.append(area, row);
    setTimeout(() => area.focus());
  }
}
