// Shows a run as it is published by /api/events, and tells it to pause, resume and step.
"use strict";

const byId = (id) => document.getElementById(id);
const PAST = 120; // Values of a line that shows how a part's utilisation went: 24 seconds.
const past = new Map();
let last = null;
let isOver = false;
let asked = 0; // When the run was asked by itself what its units wait for, in seconds of real time.

// The token is in a cookie now, and need not stay in the address.
history.replaceState(null, "", "/");

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// 12345678 as "12.3 M".
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  for (const [scale, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= scale) return `${(value / scale).toFixed(1)} ${prefix}`;
  }
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}

function simulated(picoseconds) {
  if (picoseconds < 1e6) return `${(picoseconds / 1e3).toFixed(1)} ns`;
  if (picoseconds < 1e9) return `${(picoseconds / 1e6).toFixed(2)} us`;
  return `${(picoseconds / 1e9).toFixed(3)} ms`;
}

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const plural = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
const percent = (value) => (value === null ? "–" : `${value.toFixed(1)} %`);
const PHASES = {
  preparing: "preparing", running: "running", held: "paused", concluding: "checking the result", ended: "ended",
};

function showHead(state) {
  const { run } = state;
  byId("title").textContent = `${run.workload || "run"} on ${run.topology}`;
  byId("subtitle").textContent = `process ${run.pid}, balar-actors ${run.program}`;
  document.title = `${PHASES[state.phase]}: ${run.workload} on ${run.topology}`;
  const badge = byId("phase");
  if (badge.textContent !== PHASES[state.phase]) badge.textContent = PHASES[state.phase];
  badge.dataset.phase = state.phase;
  const ended = state.phase === "ended" || state.phase === "concluding";
  byId("pause").disabled = ended || state.phase === "held";
  byId("resume").disabled = ended || state.phase === "running";
  byId("step").disabled = ended;
  byId("step-time").disabled = ended;
  byId("ask").disabled = state.phase === "ended";
}

function silence(state) {
  if (state.unanswered_seconds < 2 || state.phase === "ended" || state.phase === "concluding") return "";
  const seconds = duration(state.unanswered_seconds);
  if (state.phase === "preparing") return `The simulator has not answered for ${seconds}: code is being loaded, or memory filled.`;
  const running = state.kernels.filter((kernel) => kernel.end_ps === null).map((kernel) => kernel.name);
  const why = state.run.is_program && running.length === 0
    ? "the program computes by itself, and simulated time stands still meanwhile, or a window does not end"
    : "a window takes long, or does not end";
  const what = running.length === 0 ? "no kernel was running" : `${running.join(", ")} was running`;
  return `The simulator has not answered for ${seconds}: ${why}. At its last answer, at ${simulated(state.sampled_ps)}, ${what}.`;
}

function notice(text, isEnd) {
  const element = byId("notice");
  element.hidden = text === "";
  if (element.textContent !== text) element.textContent = text;
  element.dataset.end = isEnd ? "yes" : "no";
}

function showProgress(state) {
  const planned = state.ctas_planned;
  const ctas = planned === null ? `${state.ctas_ended} CTAs have ended` : `${state.ctas_ended} of ${planned} CTAs have ended`;
  byId("done").textContent = ctas;
  const { fraction, seconds_left: left, basis } = state.estimate;
  const isOpen = state.phase !== "ended" && state.phase !== "concluding";
  byId("left").textContent = left !== null && isOpen ? (left < 1 ? "less than a second left" : `about ${duration(left)} left`) : "";
  byId("basis").textContent = isOpen ? (left === null ? `What is left is ${basis}` : `Estimated ${basis}.`) : "";
  const bar = byId("bar");
  bar.hidden = fraction === null;
  if (fraction !== null) {
    const share = Math.round(fraction * 1000) / 10;
    bar.setAttribute("aria-valuenow", String(share));
    byId("bar-fill").style.setProperty("--share", `${share}%`);
  }
  const tiles = [
    ["simulated time", simulated(state.sim_ps)],
    ["real time", duration(state.wall_seconds)],
    ["simulated in a second", `${short(state.sim_us_per_second)} us`],
    ["warp instructions/s", short(state.warp_instructions_per_second)],
    ["messages/s", short(state.messages_per_second)],
    ["kernels ended", String(state.kernels_ended)],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, value]) => {
    const tile = make("div");
    tile.append(make("dt", "", name), make("dd", "", value));
    return tile;
  }));
}

function line(key, value) {
  if (!past.has(key)) past.set(key, []);
  const values = past.get(key);
  values.push(value ?? 0);
  if (values.length > PAST) values.shift();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "past");
  svg.setAttribute("viewBox", `0 0 ${PAST - 1} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const polyline = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const first = PAST - values.length;
  polyline.setAttribute("points", values.map((v, i) => `${first + i},${(97 - v * 0.94).toFixed(1)}`).join(" "));
  svg.append(polyline);
  return svg;
}

function share(part, key) {
  const row = make("div", key ? "share with-past" : "share");
  const meter = make("span", "meter");
  const fill = make("i");
  fill.style.setProperty("--share", `${part.percent ?? 0}%`);
  meter.append(fill);
  const name = make("b", "", part.name.replaceAll("_", " "));
  name.title = name.textContent;
  row.append(name, meter);
  if (key) row.append(line(key, part.percent));
  row.append(make("output", "", percent(part.percent)));
  return row;
}

const SHOWN = ["sm_ipc", "l1_hit_rate", "l2_hit_rate_rd", "l2_throughput", "dram_read_throughput", "dram_write_throughput"];
const NAMES = {
  sm_ipc: "IPC of an SM", l1_hit_rate: "L1 hits", l2_hit_rate_rd: "L2 hits of reads", l2_throughput: "L2 throughput",
  dram_read_throughput: "memory read", dram_write_throughput: "memory written",
};

function showGpus(state) {
  byId("gpus").replaceChildren(...state.gpus.map((gpu) => {
    const card = make("section", "card");
    const head = make("h2", "", gpu.name);
    head.append(make("span", "", `${plural(gpu.kernels, "kernel")} now, ${gpu.kernels_ended} ended`));
    card.append(head);
    const halves = make("div", "halves");
    const parts = make("div");
    const stretch = `${simulated(state.measured_from_ps)} to ${simulated(state.measured_to_ps)}`;
    parts.append(make("h3", "", `Utilisation, ${stretch}`), ...gpu.utilisation.map((part) => share(part, `${gpu.name} ${part.name}`)));
    const stalls = make("div", "stalls");
    stalls.append(make("h3", "", "What resident warps did"));
    stalls.append(...gpu.stalls.slice(0, 8).map((part) => share(part)));
    if (gpu.stalls.length === 0) stalls.append(make("p", "quiet", "No warp was resident."));
    halves.append(parts, stalls);
    const metrics = make("dl", "tiles metrics");
    for (const name of SHOWN) {
      const metric = gpu.metrics.find((known) => known.name === name);
      if (!metric) continue;
      const tile = make("div");
      tile.title = metric.meaning;
      const unit = metric.unit === "instruction/cycle" ? "" : ` ${metric.unit}`;
      tile.append(make("dt", "", NAMES[name]), make("dd", "", metric.value === null ? "–" : short(metric.value) + unit));
      metrics.append(tile);
    }
    card.append(halves, metrics);
    return card;
  }));
}

function showKernels(state) {
  const rows = [...state.kernels].reverse().map((kernel) => {
    const row = make("tr", kernel.end_ps === null ? "resident" : "");
    const time = kernel.end_ps === null ? "runs" : simulated(kernel.end_ps - kernel.start_ps);
    row.append(
      make("td", "", String(kernel.launch)), make("td", "name", kernel.name), make("td", "wide", kernel.gpu),
      make("td", "number", `${kernel.ctas_ended} of ${kernel.ctas}`), make("td", "number wide", simulated(kernel.start_ps)),
      make("td", "number", time),
    );
    return row;
  });
  byId("kernels").replaceChildren(...rows);
  byId("no-kernels").hidden = rows.length > 0;
}

let marked = null;
async function loadPicture() {
  const answer = await fetch("/api/topology");
  if (!answer.ok) return;
  const drawing = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
  byId("picture").replaceChildren(document.importNode(drawing, true));
  marked = [...byId("picture").querySelectorAll("[data-units]")].map((shape) => {
    const title = shape.querySelector("title");
    return { shape, units: shape.dataset.units.split(" "), title, name: title ? title.textContent : "" };
  });
  // Where it does not fit, the GPUs are what is looked at first.
  byId("picture").scrollLeft = byId("picture").scrollWidth;
  if (last) showUnits(last);
}

function showUnits(state) {
  for (const { shape, units, title, name } of marked ?? []) {
    const loads = units.map((unit) => state.units[unit]).filter((load) => load !== undefined);
    if (loads.length === 0) continue;
    const load = Math.max(...loads);
    shape.classList.add("loaded");
    shape.style.setProperty("--load", `${load}%`);
    if (title) title.textContent = `${name}: ${load.toFixed(1)} %`;
  }
}

function showWaiting(lines, when) {
  byId("waiting").replaceChildren(...lines.map((text) => make("li", "", text)));
  byId("waiting-when").textContent = when;
}

async function ask() {
  byId("waiting-when").textContent = "asking";
  try {
    const answer = await (await fetch("/api/waiting")).json();
    const lines = answer.waiting;
    const at = simulated(answer.sim_ps);
    if (answer.answered) {
      showWaiting(lines, lines.length === 0 ? `At ${at}, no unit waited.` : `At ${at}:`);
    } else {
      const why = answer.silence ?? "the run has not answered";
      showWaiting(lines, lines.length === 0 ? `${why}.` : `${why}. At ${at}:`);
    }
  } catch {
    byId("waiting-when").textContent = "The simulator is gone.";
  }
}

async function order(path) {
  try {
    const answer = await fetch(path, { method: "POST" });
    if (!answer.ok) notice((await answer.text()).trim(), false);
  } catch {
    notice("The simulator is gone.", false);
  }
}

function show(state) {
  last = state;
  showHead(state);
  notice(state.ending === null ? silence(state) : `The run is over: ${state.ending}.`, state.ending !== null);
  showProgress(state);
  showUnits(state);
  showGpus(state);
  showKernels(state);
  const isStill = state.phase === "running" && state.still_seconds > 3;
  if (isStill && state.wall_seconds - asked > 5) {
    asked = state.wall_seconds;
    ask();
  }
  byId("foot").textContent = `${short(state.windows)} windows, ${short(state.messages)} messages. Rates are those of the last three seconds; ` +
    "utilisation is that since the sample before, and at the end that of the whole run.";
}

byId("pause").addEventListener("click", () => order("/api/pause"));
byId("resume").addEventListener("click", () => order("/api/resume"));
byId("step").addEventListener("click", () => order(`/api/step?time=${byId("step-time").value}`));
byId("ask").addEventListener("click", ask);

const events = new EventSource("/api/events");
events.addEventListener("message", (event) => {
  const state = JSON.parse(event.data);
  show(state);
  if (state.ending !== null) {
    isOver = true;
    events.close();
  }
});
events.addEventListener("error", () => {
  if (isOver) return;
  notice("The simulator is gone without a word: it was killed, or ended at once. What is shown is its last state.", true);
  for (const id of ["pause", "resume", "step", "step-time", "ask"]) byId(id).disabled = true;
  byId("phase").textContent = "gone";
  byId("phase").dataset.phase = "ended";
});
loadPicture();
