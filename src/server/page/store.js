// Conversations, kept in the browser (IndexedDB). A conversation is a tree: nodes {id, parent, role, content, reasoning,
// stats, logprobs, error, time}; `leaf` is the last node of the branch that is shown.

const memory = new Map();
let database = null;

export async function openStore() {
  try {
    database = await new Promise((resolve, reject) => {
      const request = indexedDB.open("qwench", 1);
      request.onupgradeneeded = () => request.result.createObjectStore("conversations", { keyPath: "id" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    database = null;
  }
  return database !== null;
}

function run(mode, action) {
  return new Promise((resolve, reject) => {
    const request = action(database.transaction("conversations", mode).objectStore("conversations"));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export async function allConversations() {
  const list = database ? await run("readonly", (store) => store.getAll()) : [...memory.values()];
  return list.sort((a, b) => b.time - a.time);
}
export function putConversation(conversation) {
  if (!database) { memory.set(conversation.id, conversation); return Promise.resolve(); }
  return run("readwrite", (store) => store.put(conversation));
}
export function removeConversation(id) {
  if (!database) { memory.delete(id); return Promise.resolve(); }
  return run("readwrite", (store) => store.delete(id));
}

export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
export function newConversation() {
  return { id: newId(), title: "", time: Date.now(), system: "", nodes: {}, leaf: null };
}
export function addNode(conversation, parent, role, content) {
  const node = { id: newId(), parent, role, content, time: Date.now() };
  conversation.nodes[node.id] = node;
  conversation.leaf = node.id;
  conversation.time = node.time;
  if (!conversation.title && role === "user") conversation.title = content.trim().replace(/\s+/g, " ").slice(0, 60);
  return node;
}
// The nodes from the first to the leaf that is shown.
export function branch(conversation) {
  const nodes = [];
  for (let id = conversation.leaf; id !== null && conversation.nodes[id]; id = conversation.nodes[id].parent) nodes.unshift(conversation.nodes[id]);
  return nodes;
}
export function siblings(conversation, node) {
  return Object.values(conversation.nodes).filter((other) => other.parent === node.parent).sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1));
}
// Shows another branch: that node, and below it the newest.
export function showBranch(conversation, node) {
  let leaf = node;
  for (;;) {
    const below = Object.values(conversation.nodes).filter((other) => other.parent === leaf.id).sort((a, b) => b.time - a.time);
    if (below.length === 0) break;
    leaf = below[0];
  }
  conversation.leaf = leaf.id;
}

export function exported(conversations) { return JSON.stringify({ format: "qwench-conversations", version: 1, conversations }, null, 1); }

// What an export holds, checked field by field; throws an Error that says what is wrong.
export function imported(text) {
  const data = JSON.parse(text);
  if (data?.format !== "qwench-conversations" || !Array.isArray(data.conversations)) throw new Error("format");
  return data.conversations.map((given) => {
    const conversation = newConversation();
    if (typeof given.title === "string") conversation.title = given.title.slice(0, 200);
    if (typeof given.system === "string") conversation.system = given.system;
    if (Number.isFinite(given.time)) conversation.time = given.time;
    const nodes = given.nodes !== null && typeof given.nodes === "object" ? given.nodes : {};
    const names = new Map(Object.keys(nodes).map((id) => [id, newId()]));
    for (const [id, node] of Object.entries(nodes)) {
      if ((node?.role !== "user" && node?.role !== "assistant") || typeof node.content !== "string") throw new Error("nodes");
      const copy = { id: names.get(id), parent: names.get(node.parent) ?? null, role: node.role, content: node.content, time: Number(node.time) || 0 };
      if (typeof node.reasoning === "string") copy.reasoning = node.reasoning;
      conversation.nodes[copy.id] = copy;
    }
    for (const node of Object.values(conversation.nodes)) {  // a loop has no beginning
      const seen = new Set();
      for (let at = node; at; at = conversation.nodes[at.parent]) {
        if (seen.has(at.id)) throw new Error("parent");
        seen.add(at.id);
      }
    }
    conversation.leaf = names.get(given.leaf) ?? null;
    return conversation;
  });
}
