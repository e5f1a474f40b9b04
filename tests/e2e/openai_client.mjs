// OpenAI's own client for node against a server: node openai_client.mjs FOLDER_WITH_OPENAI BASE_URL KEY
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, baseURL, apiKey] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(createRequire(join(folder, "x.js")).resolve("openai")));
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const request = { model: "small", messages: [{ role: "user", content: "Say hi." }], temperature: 0, max_completion_tokens: 12 };

const models = [];
for await (const model of client.models.list()) models.push(model.id);
const whole = await client.chat.completions.create(request);
let text = "", usage = null;
for await (const chunk of await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
const completion = await client.completions.create({ model: "small", prompt: "One, two,", max_tokens: 3, echo: true });
let param = null;
try {
  await client.chat.completions.create({ ...request, temperature: 9 });
} catch (error) {
  if (error instanceof OpenAI.BadRequestError) param = error.param;
}
const aborted = await client.chat.completions.create({ ...request, max_completion_tokens: 400, stream: true });
for await (const chunk of aborted) {
  if (chunk.choices[0]?.delta?.content) break;  // leaves: the request ends
}
console.log(JSON.stringify({ models, whole: whole.choices[0].message.content, text, total: usage?.total_tokens,
  whole_total: whole.usage.total_tokens, completion: completion.choices[0].text, param }));
