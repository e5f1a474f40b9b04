// OpenAI's own client for node calls tools: node openai_tools.mjs FOLDER_WITH_OPENAI BASE_URL REQUEST
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, baseURL, json] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(createRequire(join(folder, "x.js")).resolve("openai")));
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const request = JSON.parse(json);

const whole = await client.chat.completions.create(request);
const streamed = { name: "", arguments: "" };
let finish = null;
for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
  for (const call of chunk.choices[0]?.delta?.tool_calls ?? []) {
    streamed.name += call.function.name ?? "";
    streamed.arguments += call.function.arguments ?? "";
  }
  finish = chunk.choices[0]?.finish_reason ?? finish;
}
console.log(JSON.stringify({ whole: whole.choices[0].message.tool_calls[0].function, streamed, finish }));
