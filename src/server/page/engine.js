// The engine at work: fed by /engine/events (what is composed, the blocks) and /metrics (latencies), while its tab is open.
import { t } from "./i18n.js";
import { engineEvents, metrics } from "./api.js";

const kSeconds = 60;
const kPasses = 120;
const panel = document.getElementById("engine");

function element(kind, className, text) { return Object.assign(document.createElement(kind), { className, textContent: text ?? "" }); }
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

// A canvas at the screen's own resolution.
function prepare(canvas, height) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui";
  return { context, width, height };
}

export class EngineView {
  constructor() {
    this.passes = [];
    this.samples = [];
    this.cells = "";
    this.cellBlocks = 1;
    this.state = null;
    this.controller = null;
  }

  build() {
    this.cards = {};
    this.canvases = {};
    const cards = element("div", "cards");
    for (const name of ["running", "waiting", "rate", "firstToken", "between", "hits", "preemptions"]) {
      const card = element("div", "card");
      this.cards[name] = element("b", "", "–");
      card.append(this.cards[name], element("span", "muted", t(name)));
      card.dataset.name = name;
      cards.append(card);
    }
    const section = (name, note) => {
      const box = element("section", "panel");
      const heading = element("h2", "", t(name));
      const canvas = element("canvas", name);
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", t(name));
      box.append(heading, canvas);
      this[`${name}Note`] = element("p", "muted", note);
      box.append(this[`${name}Note`]);
      this.canvases[name] = canvas;
      return box;
    };
    const keys = (...names) => names.flatMap((name) => [element("span", `key ${name}`), element("span", "muted", t(name))]);
    const blocks = section("blocks", "");
    this.blockKeys = element("p", "muted");
    blocks.append(this.blockKeys);
    const passes = section("passes", t("passesNote"));
    passes.append(...keys("prefill", "decode"));
    const top = panel.scrollTop;
    panel.replaceChildren(cards, blocks, passes, section("speed", ""), section("latency", ""));
    this.keys = keys;
    this.draw();
    panel.scrollTop = top;
  }

  // `onError(error)`: what went wrong, null when nothing does any more.
  open(onError) {
    this.build();
    if (this.controller) return;
    this.controller = new AbortController();
    this.listen(this.controller.signal, onError);
    this.poll(this.controller.signal);
  }

  close() {
    this.controller?.abort();
    this.controller = null;
  }

  async listen(signal, onError) {
    while (!signal.aborted) {
      try {
        for await (const event of engineEvents(signal)) {
          this.take(event);
          onError(null);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.state = null;
        this.draw();
        onError(error);
      }
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }

  take(event) {
    this.state = event;
    this.passes.push(...event.passes);
    this.passes.splice(0, Math.max(0, this.passes.length - kPasses));
    if (event.kv.cells !== undefined) { this.cells = event.kv.cells; this.cellBlocks = event.kv.blocks_per_cell; }
    this.draw();
  }

  async poll(signal) {
    while (!signal.aborted) {
      try {
        const now = await metrics();
        this.samples.push({ time: performance.now(), ...now });
        this.samples.splice(0, Math.max(0, this.samples.length - kSeconds - 1));
        this.draw();
      } catch { /* the event stream says it */ }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  rates() {
    return this.samples.slice(1).map((sample, i) => {
      const before = this.samples[i];
      return 1000 * (sample["qwench:generation_tokens_total"] - before["qwench:generation_tokens_total"]) / (sample.time - before.time);
    });
  }

  draw() {
    if (panel.hidden || !this.cards) return;
    const last = this.samples.at(-1) || {};
    const mean = (name) => last[`qwench:${name}_count`] ? `${(1000 * last[`qwench:${name}_sum`] / last[`qwench:${name}_count`]).toFixed(1)} ms` : "–";
    const rates = this.rates();
    for (const name of ["running", "waiting"]) this.cards[name].textContent = this.state?.[name] ?? "–";
    this.cards.rate.textContent = rates.length ? rates.at(-1).toFixed(1) : "–";
    this.cards.firstToken.textContent = mean("time_to_first_token_seconds");
    this.cards.between.textContent = mean("inter_token_latency_seconds");
    const asked = last["qwench:prefix_cache_queries_total"];
    this.cards.hits.textContent = asked ? `${(100 * last["qwench:prefix_cache_hits_total"] / asked).toFixed(0)} %` : "–";
    this.cards.preemptions.textContent = last["qwench:num_preemptions_total"] ?? "–";
    this.drawBlocks();
    this.drawPasses();
    this.drawLine(this.canvases.speed, rates, kSeconds, "used");
    this.drawLine(this.canvases.latency, this.passes.map((pass) => pass.ms), kPasses, "shared");
  }

  drawBlocks() {
    const kSize = 12;
    const columns = Math.max(1, Math.floor(this.canvases.blocks.clientWidth / kSize));
    const rows = Math.max(1, Math.ceil(this.cells.length / columns));
    this.canvases.blocks.style.height = `${rows * kSize}px`;
    const { context } = prepare(this.canvases.blocks, rows * kSize);
    const colours = { ".": colour("free"), c: colour("cached"), u: colour("used"), s: colour("shared") };
    for (let i = 0; i < this.cells.length; ++i) {
      context.fillStyle = colours[this.cells[i]];
      context.fillRect((i % columns) * kSize, Math.floor(i / columns) * kSize, kSize - 2, kSize - 2);
    }
    const kv = this.state?.kv;
    if (!kv) { this.blocksNote.textContent = t("quiet"); return; }
    this.blocksNote.textContent = t("blocksNote", { blocks: kv.blocks, cell: this.cellBlocks });
    this.blockKeys.replaceChildren(...["used", "shared", "cached", "free"].flatMap((name) => {
      const [key, label] = this.keys(name);
      label.textContent += ` ${kv[name]}`;
      label.dataset.count = name;
      return [key, label];
    }));
  }

  drawPasses() {
    const { context, width, height } = prepare(this.canvases.passes, 140);
    const most = Math.max(8, ...this.passes.map((pass) => pass.prefill + pass.decode));
    const step = width / kPasses;
    this.passes.forEach((pass, i) => {
      const x = width - (this.passes.length - i) * step;
      const decode = (height - 14) * pass.decode / most;
      const prefill = (height - 14) * pass.prefill / most;
      context.fillStyle = colour("used");
      context.fillRect(x, height - decode, Math.max(1, step - 1), decode);
      context.fillStyle = colour("shared");
      context.fillRect(x, height - decode - prefill, Math.max(1, step - 1), prefill);
    });
    context.fillStyle = colour("muted");
    context.fillText(String(most), 2, 11);
  }

  drawLine(canvas, values, count, name) {
    const { context, width, height } = prepare(canvas, 140);
    const most = Math.max(1, ...values);
    context.strokeStyle = colour(name);
    context.lineWidth = 2;
    context.beginPath();
    values.forEach((value, i) => {
      const x = width - (values.length - 1 - i) * width / count;
      const y = height - 2 - (height - 16) * value / most;
      if (i === 0) context.moveTo(x, y); else context.lineTo(x, y);
    });
    context.stroke();
    context.fillStyle = colour("muted");
    context.fillText(most.toFixed(most < 10 ? 1 : 0), 2, 11);
  }
}
