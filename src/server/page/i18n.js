// The page's words, in English and Chinese. t("name", values) fills {places}; what is no name stays as it is.

const words = {
  en: {
    chat: "Chat", engine: "Engine", newChat: "New chat", exportAll: "Export", importAll: "Import", send: "Send", stop: "Stop",
    placeholder: "Message (Enter sends, Shift+Enter breaks the line)", settings: "Settings", language: "中文", theme: "Theme",
    empty: "Ask something. Nothing leaves this computer and the server you opened.",
    copy: "copy", copied: "copied", regenerate: "regenerate", edit: "edit", save: "Save as a branch", cancel: "Cancel",
    remove: "Delete this conversation", removeSure: "Delete “{title}”? It cannot be brought back.", tokens: "tokens", text: "text",
    previous: "previous branch", next: "next branch", thinking: "Thinking…", thought: "Thought for {seconds} s", reasoned: "Reasoning",
    stats: "{prompt} + {completion} tokens", speedNote: "{rate} tok/s", stopped: "stopped", cut: "unfinished", length: "cut at the limit of tokens",
    system: "System prompt", sampling: "Sampling", byDefault: "{value} (the model's)", none: "none", display: "Display",
    temperature: "Temperature", top_p: "Top p", top_k: "Top k", min_p: "Min p", repetition_penalty: "Repetition penalty",
    presence_penalty: "Presence penalty", frequency_penalty: "Frequency penalty", max_tokens: "Longest answer, tokens", seed: "Seed",
    stopStrings: "Stop strings, one a line", think: "Thinking", thinkDefault: "as the model does", thinkOn: "on", thinkOff: "off",
    logprobs: "Collect token probabilities", key: "API key", keyNote: "kept until this tab closes",
    plain: "This build has no {libraries}: answers are shown as plain text where they need it.",
    noStore: "This browser lets the page keep nothing: conversations are lost when it closes.",
    unreachable: "The server does not answer.", imported: "Conversations imported: {count}", notImported: "That is no export of this page: {why}",
    notKept: "The browser could not store that, its space may be full: {why}", answering: "being answered", brokenOff: "The connection broke off.",
    placeholderShort: "Message", noText: "no text",
    contextHolds: "what the context holds", wrongKey: "The server does not know this API key.",
    tooLarge: "the file is too large",
    needKey: "This server needs an API key: type it in the settings.", untitled: "New conversation", loading: "The model is being loaded.",
    running: "running", waiting: "waiting", rate: "tokens per second", firstToken: "first token", between: "between tokens",
    hits: "of prompts cached", preemptions: "preemptions", passes: "Each pass", passesNote: "rows: of prompts (prefill), of answers (decode)",
    prefill: "prefill", decode: "decode", blocks: "Blocks of the KV cache", blocksNote: "{blocks} blocks of 16 positions; a square is {cell}",
    used: "used", shared: "shared", cached: "cached", free: "free", speed: "Tokens per second", latency: "Milliseconds a pass",
    quiet: "Nothing has run yet.", id: "id", probability: "probability",
  },
  zh: {
    chat: "对话", engine: "引擎", newChat: "新对话", exportAll: "导出", importAll: "导入", send: "发送", stop: "停止",
    placeholder: "输入消息（Enter 发送，Shift+Enter 换行）", settings: "设置", language: "English", theme: "主题",
    empty: "请提问。内容只在本机与您打开的服务器之间传送。",
    copy: "复制", copied: "已复制", regenerate: "重新生成", edit: "编辑", save: "保存为分支", cancel: "取消",
    remove: "删除此对话", removeSure: "删除“{title}”？无法恢复。", tokens: "词元", text: "文本",
    previous: "上一分支", next: "下一分支", thinking: "思考中…", thought: "思考了 {seconds} 秒", reasoned: "推理过程",
    stats: "{prompt} + {completion} 词元", speedNote: "{rate} 词元/秒", stopped: "已停止", cut: "未完成", length: "达到词元上限",
    system: "系统提示词", sampling: "采样", byDefault: "{value}（模型默认）", none: "无", display: "显示",
    temperature: "温度", top_p: "Top p", top_k: "Top k", min_p: "Min p", repetition_penalty: "重复惩罚",
    presence_penalty: "存在惩罚", frequency_penalty: "频率惩罚", max_tokens: "回答最长词元数", seed: "随机种子",
    stopStrings: "停止字符串，每行一个", think: "思考", thinkDefault: "模型默认", thinkOn: "开", thinkOff: "关",
    logprobs: "收集词元概率", key: "API 密钥", keyNote: "保留到此标签页关闭",
    plain: "此构建缺少 {libraries}：相应内容以纯文本显示。",
    noStore: "浏览器不允许保存：关闭后对话将丢失。",
    unreachable: "服务器没有响应。", imported: "已导入 {count} 个对话。", notImported: "这不是本页面的导出文件：{why}",
    notKept: "浏览器无法保存（空间可能已满）：{why}", answering: "正在回答", brokenOff: "连接中断。",
    placeholderShort: "输入消息", noText: "没有文字",
    contextHolds: "直到上下文用尽", wrongKey: "服务器不认识此 API 密钥。",
    tooLarge: "文件太大",
    needKey: "此服务器需要 API 密钥：请在设置中输入。", untitled: "新对话", loading: "模型正在加载。",
    running: "运行中", waiting: "等待中", rate: "词元/秒", firstToken: "首词元", between: "词元间隔",
    hits: "提示词命中缓存", preemptions: "抢占", passes: "每一步", passesNote: "行数：提示词（预填充）与回答（解码）",
    prefill: "预填充", decode: "解码", blocks: "KV 缓存块", blocksNote: "{blocks} 块，每块 16 个位置；每格代表 {cell} 块",
    used: "使用中", shared: "共享", cached: "已缓存", free: "空闲", speed: "词元/秒", latency: "每步毫秒",
    quiet: "尚无运行。", id: "编号", probability: "概率",
  },
};

let language = "en";

export function languages() { return Object.keys(words); }
export function currentLanguage() { return language; }
export function setLanguage(name) {
  language = Object.hasOwn(words, name) ? name : "en";
  document.documentElement.lang = language;
}
export function preferredLanguage() { return (navigator.language || "en").startsWith("zh") ? "zh" : "en"; }
export function t(name, values = {}) {
  return (Object.hasOwn(words[language], name) ? words[language][name] : name).replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}
