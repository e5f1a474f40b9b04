// The server's API, as the page uses it.

let key = "";
try { key = sessionStorage.getItem("key") || ""; } catch { /* a browser that keeps nothing */ }
export function apiKey() { return key; }
export function setApiKey(value) {
  key = value;
  try { sessionStorage.setItem("key", key); } catch { /* until the page closes */ }
}

export class ApiError extends Error {
  constructor(status, message, code = "") {
    super(message);
    Object.assign(this, { status, code });
  }
}

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  let error = {};
  try { error = (await response.json()).error; } catch { /* the status says it */ }
  throw new ApiError(response.status, error.message || `${response.status}`, error.code);
}

export async function props() { return (await ask("/props")).json(); }
export async function metrics() { return parseMetrics(await (await ask("/metrics")).text()); }

// Prometheus's text: name -> sum of its samples' values.
export function parseMetrics(text) {
  const values = {};
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(\{[^}]*\})? (\S+)$/.exec(line);
    if (found && !/_bucket$/.test(found[1])) values[found[1]] = (values[found[1]] || 0) + Number(found[3]);
  }
  return values;
}

// The data of each event of a stream.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const data = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) yield data;
    }
  }
}

export async function* chat(body, signal) {
  const response = await ask("/v1/chat/completions", { method: "POST", signal, headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }) });
  for await (const data of events(response)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(500, chunk.error.message);
    yield chunk;
  }
  throw new TypeError("the stream has no end");
}

export async function* engineEvents(signal) {
  for await (const data of events(await ask("/engine/events", { signal }))) yield JSON.parse(data);
}
