// Conversations as a file, and back. What a file holds is checked field by field: it may be anybody's.
import { newConversation, newId, plain } from "./store.js";

const kFormat = "qwench-conversations";
const kVersion = 2;  // 1 had no finish, error, usage, rate, thought and logprobs
export const kMostBytes = 256 << 20;
const kMostConversations = 10000;
const kMostNodes = 10000;

class BadFile extends Error {}

function text(value, where, most = 16 << 20) {
  if (typeof value !== "string") throw new BadFile(`${where}: text is expected`);
  if (value.length > most) throw new BadFile(`${where}: more than ${most} characters`);
  return value;
}
function number(value, where, low, high) {
  if (typeof value !== "number" || !(value >= low && value <= high)) throw new BadFile(`${where}: a number from ${low} to ${high} is expected`);
  return value;
}
function list(value, where, most) {
  if (!Array.isArray(value)) throw new BadFile(`${where}: a list is expected`);
  if (value.length > most) throw new BadFile(`${where}: more than ${most} entries`);
  return value;
}
function object(value, where) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new BadFile(`${where}: an object is expected`);
  return value;
}

function tokenOf(value, where) {
  const { token, id, logprob, bytes } = object(value, where);
  const copy = { token: text(token, `${where}.token`, 10000), logprob: number(logprob, `${where}.logprob`, -1e30, 1e-3) };
  if (id !== undefined) copy.id = number(id, `${where}.id`, 0, 2 ** 31);
  if (token.includes("\ufffd") && bytes) copy.bytes = list(bytes, `${where}.bytes`, 1000).map((byte) => number(byte, `${where}.bytes`, 0, 255));
  return copy;
}
// An entry of an answer's log-probabilities, as the page keeps it.
export function tokenEntry(value, where = "logprobs") {
  const others = list(value?.top_logprobs ?? [], `${where}.top_logprobs`, 100);
  return { ...tokenOf(value, where), top_logprobs: others.map((other, i) => tokenOf(other, `${where}.top_logprobs[${i}]`)) };
}

// The optional fields of a node.
const kOptional = {
  reasoning: text,
  error: text,
  finish: (value, where) => text(value, where, 40),
  thought: (value, where) => number(value, where, 0, 1e9),
  rate: (value, where) => number(value, where, 0, 1e9),
  usage: (value, where) => ({ prompt: number(object(value, where).prompt, `${where}.prompt`, 0, 1e12),
    completion: number(value.completion, `${where}.completion`, 0, 1e12) }),
  logprobs: (value, where) => list(value, where, 1 << 20).map((entry, i) => tokenEntry(entry, `${where}[${i}]`)),
};

function nodeOf(value, where) {
  const { role, content, time } = object(value, where);
  if (role !== "user" && role !== "assistant") throw new BadFile(`${where}.role: "user" or "assistant" is expected`);
  const node = { role, content: text(content, `${where}.content`), time: number(time, `${where}.time`, 0, 8.64e15) };
  for (const [name, check] of Object.entries(kOptional)) {
    if (Object.hasOwn(value, name) && value[name] !== undefined) node[name] = check(value[name], `${where}.${name}`);
  }
  return node;
}

function conversationOf(value, where) {
  const given = object(value, where);
  const entries = Object.entries(object(given.nodes, `${where}.nodes`));
  if (entries.length > kMostNodes) throw new BadFile(`${where}.nodes: more than ${kMostNodes} entries`);
  const names = new Map(entries.map(([id]) => [id, newId()]));  // its own ids: nothing of a file replaces what is there
  const conversation = newConversation();
  conversation.title = text(given.title ?? "", `${where}.title`).slice(0, 200);
  conversation.system = text(given.system ?? "", `${where}.system`);
  conversation.time = number(given.time, `${where}.time`, 0, 8.64e15);
  for (const [id, node] of entries) {
    const parent = node?.parent ?? null;
    if (parent !== null && !names.has(parent)) throw new BadFile(`${where}.nodes.${id.slice(0, 40)}.parent: no such node`);
    conversation.nodes[names.get(id)] = { id: names.get(id), parent: parent === null ? null : names.get(parent), ...nodeOf(node, `${where}.nodes.${id.slice(0, 40)}`) };
  }
  const grounded = new Set();  // nodes above which there is a beginning
  for (const node of Object.values(conversation.nodes)) {
    const path = new Set();
    for (let at = node; at && !grounded.has(at.id); at = conversation.nodes[at.parent]) {
      if (path.has(at.id)) throw new BadFile(`${where}.nodes: a node is above itself`);
      path.add(at.id);
    }
    for (const id of path) grounded.add(id);
  }
  const leaf = given.leaf ?? null;
  if (leaf !== null && !names.has(leaf)) throw new BadFile(`${where}.leaf: no such node`);
  conversation.leaf = leaf === null ? null : names.get(leaf);
  return conversation;
}

export function exported(conversations) {
  return JSON.stringify({ format: kFormat, version: kVersion, conversations: conversations.map(plain) });
}

// What an export holds; throws an Error that says what is wrong.
export function imported(content) {
  let data = null;
  try { data = JSON.parse(content); } catch { throw new BadFile("no JSON"); }
  if (data?.format !== kFormat) throw new BadFile(`format: "${kFormat}" is expected`);
  if (data.version !== 1 && data.version !== kVersion) throw new BadFile(`version: this page reads 1 and ${kVersion}`);
  return list(data.conversations, "conversations", kMostConversations).map((one, i) => conversationOf(one, `conversations[${i}]`));
}
