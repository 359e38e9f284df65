// A message's story: a line per process from the top down, arrows for what was
// sent, a cross where one died. Rows are in order of time, not to its scale:
// between two of them may lie a microsecond or a minute.
import { el, t, known, set, nameOf } from "parts";

const sent = {
  intent: ["process", "queue"], accepted: ["queue", "process"], rejected: ["queue", "process"], unknown: ["queue", "process"],
  delivered: ["queue", "process"], effect: ["process", "database"], effectUnknown: ["process", "database"],
  acked: ["process", "queue"], nacked: ["process", "queue"], dead: ["process", "queue"],
};

// story is what is known of a message: as the lab tells it, or else from the
// records that this page has.
export function story(lane, id, { records, strikes }, told) {
  const m = lane.messages.get(id);
  const on = (process) => process === 1000 ? "queue" : process === 1001 ? "database" : process;
  const steps = told ? told.steps.map((s) => ({ at: s.at, event: s.event, attempt: s.attempt, ...(s.to === null || s.to === undefined ? ends(s.event, on(s.process)) : { from: on(s.process), to: on(s.to) }) }))
    : records.map(([at, event, process, , attempt]) => ({ at, event, attempt, ...ends(event, process) }));
  const first = steps[0]?.at ?? 0, met = new Set(["queue", "database", ...steps.flatMap((s) => [s.from, s.to])]);
  const deaths = told ? (told.deaths ?? []).map((d) => ({ at: d.at, event: "death", on: on(d.process), text: d.text }))
    : strikes.filter((s) => s.state === "confirmed" && deadly.test(s.name)).map((s) => ({ at: s.at, event: "death", on: s.process ? on(s.process) : s.name.endsWith("database") ? "database" : "queue", text: strikeName(s.name) }));
  // What was done to processes that this message never met is beside its story.
  steps.push(...deaths.filter((d) => met.has(d.on) && d.at >= first));
  steps.sort((a, b) => a.at - b.at);
  const place = told ? (told.verdict === "lost" ? told.place : null) : m?.where === "lost" ? m.place : null;
  return { id, first, steps, met, place, verdict: told?.verdict ?? verdictOf(m), text: told?.text ?? [], names: told?.processes ?? [] };
}

const deadly = /^(kill|cut|pull)-/;

function ends(event, process) {
  const [from, to] = sent[event] ?? ["process", "process"];
  return { from: from === "process" ? process : from, to: to === "process" ? process : to };
}

function verdictOf(m) {
  if (!m) return "unknown";
  if (m.where === "lost") return "lost";
  if (m.effects > 0) return m.twice || m.double ? "repeated" : "done";
  return m.where === "dead" ? "dead" : m.rejected ? "rejected" : m.where === "unknown" ? "unknown" : "waiting";
}

function columns(lane, s) {
  const named = (n) => nameOf(s.names.find((p) => p.n === n) ?? lane.processes.find((p) => p.n === n) ?? { n });
  const senders = new Set(s.steps.filter((x) => x.event === "intent").map((x) => x.from));
  const rest = [...s.met].filter((k) => k !== "queue" && k !== "database" && !senders.has(k));
  return [
    ...[...senders].map((n) => ({ key: n, name: named(n) })),
    { key: "queue", name: lane.info.kind === "memory" ? t("queue") : named(1000) },
    ...rest.sort((a, b) => a - b).map((n) => ({ key: n, name: named(n) })),
    { key: "database", name: named(1001) },
  ];
}

const offset = (ms) => (ms < 0 ? "−" : "+") + (Math.abs(ms) < 1000 ? Math.abs(ms).toFixed(1) + " ms" : (Math.abs(ms) / 1000).toFixed(3) + " s");

// said is a step in words.
export function said(s) {
  if (s.event === "death") return s.text;
  const key = "step_" + s.event;
  return known(key) ? t(key) + (s.event === "delivered" && s.attempt > 0 ? t("attempt", s.attempt) : "") : s.event;
}
export const strikeName = (name) => known("strike_" + name) ? t("strike_" + name) : name;
export const placeName = (place) => known("place_" + place) ? t("place_" + place) : place;

const ns = "http://www.w3.org/2000/svg";
function svg(tag, attributes, text) {
  const e = document.createElementNS(ns, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

// lamport draws the story, width pixels wide.
export function lamport(lane, s, width) {
  const cols = columns(lane, s), left = 74, row = 40, top = 54;
  const gap = Math.max(58, Math.min(190, (width - left - 64) / Math.max(1, cols.length - 1)));
  const w = left + gap * (cols.length - 1) + 60, h = top + s.steps.length * row + 36;
  const x = (key) => left + 20 + Math.max(0, cols.findIndex((c) => c.key === key)) * gap;
  const picture = svg("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "img", "aria-label": t("lamportOf", s.id) });
  const died = new Map();
  s.steps.forEach((step, i) => { if (step.event === "death" && !died.has(step.on)) died.set(step.on, top + i * row + row / 2); });
  for (const c of cols) {
    const end = died.get(c.key), px = x(c.key);
    picture.append(svg("line", { x1: px, x2: px, y1: top - 14, y2: end ?? h - 14, class: "life" }));
    if (end) picture.append(svg("line", { x1: px, x2: px, y1: end, y2: h - 14, class: "life gone" }));
    const words = c.name.split(" "), cut = gap < 84 && words.length > 1;
    picture.append(svg("text", { x: px, y: cut ? 16 : 26, class: "who" }, cut ? words.slice(0, -1).join(" ") : c.name));
    if (cut) picture.append(svg("text", { x: px, y: 31, class: "who" }, words.at(-1)));
  }
  s.steps.forEach((step, i) => {
    const y = top + i * row + row / 2;
    picture.append(svg("text", { x: 2, y: y + 4, class: "when" }, offset(step.at - s.first)));
    if (step.event === "death") {
      const px = x(step.on), right = px > w * .55;
      picture.append(svg("path", { d: `M${px - 8} ${y - 8}L${px + 8} ${y + 8}M${px + 8} ${y - 8}L${px - 8} ${y + 8}`, class: "death" }));
      picture.append(svg("text", { x: right ? px - 14 : px + 14, y: y + 4, class: "struck" + (right ? " end" : "") }, step.text.length > 28 ? step.text.slice(0, 27) + "…" : step.text));
      return;
    }
    const a = x(step.from), b = x(step.to), way = Math.sign(b - a) || 1, y1 = y - 8, y2 = y + 8;
    const doubt = step.event === "unknown" || step.event === "effectUnknown", again = step.event === "delivered" && step.attempt > 1;
    const cls = "sent " + (doubt ? "doubt" : again ? "again" : step.event === "effect" ? "done" : "");
    const end = doubt ? a + (b - a) * .55 : b - way * 3;
    const ye = doubt ? y1 + (y2 - y1) * .55 : y2;
    picture.append(svg("line", { x1: a, y1, x2: end, y2: ye, class: cls }));
    if (doubt) picture.append(svg("text", { x: end + way * 8, y: ye + 5, class: "question" }, "?"));
    else {
      const slope = Math.atan2(ye - y1, end - a), tip = (d) => `${end - 8 * Math.cos(slope + d)} ${ye - 8 * Math.sin(slope + d)}`;
      picture.append(svg("path", { d: `M${end} ${ye}L${tip(.45)}L${tip(-.45)}Z`, class: "tip " + cls }));
    }
    picture.append(svg("circle", { cx: a, cy: y1, r: 3, class: "at" }));
    if (gap >= 84) picture.append(svg("text", { x: (a + b) / 2, y: y - 6, class: "what" }, said(step)));
  });
  return picture;
}

// tell shows a story in its dialog: the picture, and the same in words.
export function tell(dialog, lane, s) {
  set(dialog.querySelector("h2"), t("storyOf", s.id));
  const verdict = dialog.querySelector(".verdict");
  set(verdict, s.place !== null ? t("lostAt", placeName(s.place)) : t("verdict_" + s.verdict));
  verdict.className = "verdict tag " + ({ lost: "v-bad", done: "v-good", waiting: "v-soft", unknown: "v-soft" }[s.verdict] ?? "v-warn");
  const room = dialog.querySelector(".picture");
  room.replaceChildren(lamport(lane, s, Math.min(880, room.clientWidth || 320)));
  const names = new Map(columns(lane, s).map((c) => [c.key, c.name])), name = (key) => names.get(key) ?? String(key);
  dialog.querySelector("ol").replaceChildren(...s.steps.map((step) => el("li", step.event === "death" ? "struck" : "",
    el("span", "when", offset(step.at - s.first)), " ",
    step.event === "death" ? `✕ ${name(step.on)}: ${said(step)}` : `${name(step.from)} → ${name(step.to)}: ${said(step)}`)));
  const text = dialog.querySelector("pre");
  text.hidden = !s.text.length;
  text.textContent = s.text.join("\n");
}
