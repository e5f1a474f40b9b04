// Conversations, kept in the browser (IndexedDB). A conversation is a tree: nodes {id, parent, role, content, time, reasoning,
// thought, finish, usage, rate, logprobs, error}; `leaf` is the last node of the branch that is shown. Several tabs may have the
// page open: nodes are only ever added, and only the tab that added one changes it, so that what is written is the union of what
// the tabs know, each node as its tab has it.

const memory = new Map();
const mine = new Set();  // ids of nodes that were added here
const known = new Set();  // ids that lie in the database: one that is gone from it was removed in another tab
let database = null;
let channel = null;

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

// Calls `heard` with {changed: id} or {removed: id} when another tab has written.
export function listenToTabs(heard) {
  try {
    channel = new BroadcastChannel("qwench");
    channel.onmessage = (event) => heard(event.data);
  } catch { /* the tabs learn of each other when they are loaded */ }
}

// Done when the transaction is: a full disk shows at its end.
function transact(mode, action) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction("conversations", mode);
    let result;
    transaction.oncomplete = () => resolve(result);
    transaction.onabort = () => reject(transaction.error || new Error("aborted"));
    action(transaction.objectStore("conversations"), (value) => { result = value; });
  });
}

export async function allConversations() {
  if (!database) return [...memory.values()];
  const list = await transact("readonly", (store, done) => { store.getAll().onsuccess = (event) => done(event.target.result); });
  for (const conversation of list) known.add(conversation.id);
  return list;
}
export async function storedConversation(id) {
  if (!database) return memory.get(id);
  const found = await transact("readonly", (store, done) => { store.get(id).onsuccess = (event) => done(event.target.result); });
  if (found) known.add(id);
  return found;
}
// What is kept of a conversation.
export function plain({ id, title, time, system, leaf, nodes }) { return { id, title, time, system, leaf, nodes }; }

function takeNode(conversation, node) {
  if (!mine.has(node.id) || !conversation.nodes[node.id]) conversation.nodes[node.id] = Object.assign(conversation.nodes[node.id] || {}, node);
}

// Without looking at what lies there: all that a page has time for when it is closed.
export function putAtOnce(conversation) {
  if (!database || conversation.removed) return;
  try {
    const transaction = database.transaction("conversations", "readwrite");
    transaction.objectStore("conversations").put(plain(conversation));
    transaction.commit();
  } catch { /* what was stored before is kept */ }
}
export async function putConversation(conversation) {
  if (conversation.removed) return;
  if (!database) { memory.set(conversation.id, conversation); return; }
  const { id } = conversation;
  await transact("readwrite", (store) => {
    store.get(id).onsuccess = (event) => {
      const stored = event.target.result;
      if (!stored && known.has(id)) { conversation.removed = true; return; }
      for (const node of Object.values(stored?.nodes || {})) takeNode(conversation, node);
      store.put(plain(conversation));
    };
  });
  if (conversation.removed) return;
  known.add(id);
  channel?.postMessage({ changed: id });
}
export async function removeConversation(id) {
  if (database) await transact("readwrite", (store) => store.delete(id));
  memory.delete(id);
  channel?.postMessage({ removed: id });
}

export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
export function newConversation() {
  return { id: newId(), title: "", time: Date.now(), system: "", nodes: {}, leaf: null };
}
export function addNode(conversation, parent, role, content) {
  const node = { id: newId(), parent, role, content, time: Date.now() };
  mine.add(node.id);
  conversation.nodes[node.id] = node;
  conversation.leaf = node.id;
  conversation.time = node.time;
  if (!conversation.title && role === "user") conversation.title = content.trim().replace(/\s+/g, " ").slice(0, 60);
  return node;
}
// The nodes from the first to the leaf that is shown.
export function branch(conversation) {
  const nodes = [];
  for (let id = conversation.leaf; id !== null && conversation.nodes[id]; id = conversation.nodes[id].parent) nodes.push(conversation.nodes[id]);
  return nodes.reverse();
}
// Nodes by what is above them, the oldest first.
export function families(conversation) {
  const found = new Map();
  for (const node of Object.values(conversation.nodes).sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1))) {
    if (found.has(node.parent)) found.get(node.parent).push(node); else found.set(node.parent, [node]);
  }
  return found;
}
// Shows another branch: that node, and below it the newest.
export function showBranch(conversation, node) {
  const below = families(conversation);
  let leaf = node;
  while (below.has(leaf.id)) leaf = below.get(leaf.id).at(-1);
  conversation.leaf = leaf.id;
}
// Takes over what another tab has written. `own` is the node that is being written here, if any.
export function takeOver(conversation, stored, own) {
  for (const node of Object.values(stored.nodes)) takeNode(conversation, node);
  Object.assign(conversation, { title: stored.title, system: stored.system, time: stored.time });
  let above = stored.leaf;
  while (above !== null && above !== conversation.leaf) above = conversation.nodes[above]?.parent ?? null;
  if (!own && above === conversation.leaf) conversation.leaf = stored.leaf;  // the branch shown here has grown
}
