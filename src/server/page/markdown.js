// Model text to elements. It is never trusted as HTML: markdown-it is told that there is none, DOMPurify takes out what is
// not plain formatting, and KaTeX and highlight.js write text. Where a library is missing, text stays text.
import { t } from "./i18n.js";

const libraries = { "markdown-it": "markdownit", DOMPurify: "DOMPurify", "highlight.js": "hljs", KaTeX: "katex" };
export function missingLibraries() { return Object.keys(libraries).filter((name) => !window[libraries[name]]); }

const kAllowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s",
    "a", "table", "thead", "tbody", "tr", "th", "td", "span", "div"],
  ALLOWED_ATTR: ["href", "class", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  RETURN_DOM_FRAGMENT: true,
};
const kMath = [["$$", "$$", true], ["\\[", "\\]", true], ["\\(", "\\)", false], ["$", "$", false]];

let parser = null;

function mathRule(state, silent) {
  for (const [open, close, display] of kMath) {
    if (!state.src.startsWith(open, state.pos)) continue;
    const begin = state.pos + open.length;
    state.unclosed ??= new Set();  // looked for once: many openings without an end take no longer than one
    let end = state.unclosed.has(close) ? -1 : state.src.indexOf(close, begin);
    if (end < 0) state.unclosed.add(close);
    while (end > 0 && close === "$" && state.src[end - 1] === "\\") end = state.src.indexOf(close, end + 1);
    if (end < 0 || end === begin || end > state.posMax) continue;
    const inside = state.src.slice(begin, end);
    // "$5 and $6" are prices.
    if (open === "$" && (/^\s|\s$/.test(inside) || /\d/.test(state.src[end + 1] || "") || inside.includes("\n\n"))) continue;
    if (!silent) {
      const token = state.push("math", "", 0);
      token.content = inside;
      token.markup = display ? "display" : "inline";
    }
    state.pos = end + close.length;
    return true;
  }
  return false;
}

function blockMathRule(state, startLine, endLine, silent) {
  const first = state.src.slice(state.bMarks[startLine] + state.tShift[startLine], state.eMarks[startLine]);
  const pair = first.startsWith("$$") ? ["$$", "$$"] : first.startsWith("\\[") ? ["\\[", "\\]"] : null;
  if (!pair) return false;
  const begin = state.bMarks[startLine] + state.tShift[startLine] + 2;
  const end = state.src.indexOf(pair[1], begin);
  if (end < 0 || end > state.eMarks[endLine - 1]) return false;
  let line = startLine;
  while (line < endLine && state.eMarks[line] < end) ++line;
  if (state.src.slice(end + 2, state.eMarks[line]).trim()) return false;
  if (silent) return true;
  const token = state.push("math", "", 0);
  token.block = true;
  token.content = state.src.slice(begin, end);
  token.markup = "display";
  state.line = line + 1;
  return true;
}

function makeParser() {
  const made = window.markdownit({ html: false, linkify: true, typographer: false });
  made.disable("image");  // a picture's address could carry the conversation away
  made.inline.ruler.before("escape", "math", mathRule);
  made.block.ruler.before("fence", "math", blockMathRule, { alt: ["paragraph"] });
  for (const rule of ["th_open", "td_open"]) {  // alignment as a class: the page's policy lets no style attribute work
    made.renderer.rules[rule] = (tokens, index, options, env, self) => {
      const token = tokens[index];
      const align = /text-align:(\w+)/.exec(token.attrGet("style"))?.[1];
      token.attrs = align ? [["class", `align-${align}`]] : null;
      return self.renderToken(tokens, index, options);
    };
  }
  made.renderer.rules.math = (tokens, index) =>
    `<span class="math ${tokens[index].markup}">${made.utils.escapeHtml(tokens[index].content)}</span>`;
  return made;
}

function decorateCode(pre, longest) {
  const code = pre.querySelector("code");
  if (!code) return;
  const text = code.textContent;
  const name = /(?:^|\s)language-([\w+#.-]+)/.exec(code.className)?.[1];
  if (window.hljs && name && window.hljs.getLanguage(name) && text.length < longest) window.hljs.highlightBlock(code);
  code.tabIndex = 0;  // so that the keyboard can scroll it
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = t("copy");
  button.addEventListener("click", () => copyText(text, button));
  pre.append(button);
}

function decorateMath(math) {
  const source = math.textContent;
  if (!window.katex || source.length > 10000) return;
  const options = { displayMode: math.classList.contains("display"), throwOnError: false, errorColor: "var(--bad)", trust: false, maxExpand: 200,
    maxSize: 20, strict: "ignore" };
  try {
    window.katex.__parse(source, options);  // KaTeX would colour what it cannot read by a style attribute
    window.katex.render(source, math, options);
  } catch (error) {
    math.replaceChildren(Object.assign(document.createElement("span"), { className: "katex-error", textContent: source, title: String(error.message) }));
  }
}

export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // not allowed on plain http from another machine
    const area = Object.assign(document.createElement("textarea"), { value: text, className: "aside", readOnly: true });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus({ preventScroll: true });
  }
  button.textContent = t("copied");
  setTimeout(() => { button.textContent = t("copy"); }, 1200);
}

const shown = new WeakMap();  // element -> {text, blocks}: what it shows, and the HTML of each block

// Makes `element` show `text`, and keeps the blocks that are the same already. `growing`: more will come, and soon.
export function renderMarkdown(element, text, growing = false) {
  if (!window.markdownit || !window.DOMPurify) {
    element.textContent = text;
    element.classList.add("plain-text");
    return;
  }
  const before = shown.get(element) || { blocks: [] };
  if (before.text === text && before.growing === growing) return;
  parser ??= makeParser();
  const fragment = window.DOMPurify.sanitize(parser.render(text), kAllowed);
  const blocks = [...fragment.children];
  const now = blocks.map((block) => block.outerHTML);
  const last = blocks.at(-1);
  const plain = growing && last?.tagName === "PRE" && now.at(-1).length > 10000;  // colours would take longer than the next word
  if (plain) now[now.length - 1] += " growing";
  shown.set(element, { text, growing, blocks: now });
  let same = 0;
  while (same < now.length && now[same] === before.blocks[same]) blocks[same++].remove();
  while (element.children.length > same) element.lastElementChild.remove();
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const math of fragment.querySelectorAll("span.math")) decorateMath(math);
  for (const pre of fragment.querySelectorAll("pre")) decorateCode(pre, plain && pre === last ? 0 : 100000);
  element.append(...fragment.children);
}
