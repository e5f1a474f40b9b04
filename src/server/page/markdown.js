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
    let end = state.src.indexOf(close, begin);
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
  made.renderer.rules.math = (tokens, index) =>
    `<span class="math ${tokens[index].markup}">${made.utils.escapeHtml(tokens[index].content)}</span>`;
  return made;
}

function decorateCode(pre) {
  const code = pre.querySelector("code");
  if (!code) return;
  const text = code.textContent;
  const name = /(?:^|\s)language-([\w+#.-]+)/.exec(code.className)?.[1];
  if (window.hljs && name && window.hljs.getLanguage(name) && text.length < 100000) window.hljs.highlightBlock(code);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = t("copy");
  button.addEventListener("click", () => copyText(text, button));
  pre.append(button);
}

export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // not allowed on plain http from another machine
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = t("copied");
  setTimeout(() => { button.textContent = before; }, 1200);
}

// Replaces what `element` holds by `text`.
export function renderMarkdown(element, text) {
  if (!window.markdownit || !window.DOMPurify) {
    element.textContent = text;
    element.classList.add("plain-text");
    return;
  }
  parser ??= makeParser();
  const fragment = window.DOMPurify.sanitize(parser.render(text), kAllowed);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const math of fragment.querySelectorAll("span.math")) {
    const source = math.textContent;
    if (!window.katex || source.length > 10000) continue;
    try {
      window.katex.render(source, math, { displayMode: math.classList.contains("display"), throwOnError: false, trust: false, maxExpand: 200, maxSize: 20, strict: "ignore" });
    } catch {
      math.textContent = source;
    }
  }
  for (const pre of fragment.querySelectorAll("pre")) decorateCode(pre);
  element.replaceChildren(fragment);
}
