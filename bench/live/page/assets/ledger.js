// What the ledger counted and what the broker said, as tables: all that a
// picture shows stands here too, for who does not see it.
import { el, t, num, set, missing, nameOf } from "parts";
import { consumers, killed } from "model";
import { pendingOf } from "queues";

// rows are the counts, most telling first; bad and warn are those whose number
// should be none.
export const rows = [
  ["sent"], ["accepted"], ["delivered"], ["effects"], ["lost", "bad"], ["redelivered", "warn"], ["effectDuplicates", "warn"], ["waiting"],
  ["unknown", "soft"], ["rejected", "warn"], ["deadLettered", "warn"], ["stranded", "warn"], ["reordered", "warn"], ["unheard", "bad"], ["missed", "warn"],
  ["producerDuplicates", "warn"], ["recovered", "soft"], ["policyDropped", "bad"], ["orders"], ["ordersWithoutMessage", "bad"],
];
// Those of them that some lanes cannot have are not unknown there.
const some = new Set(["missed", "orders", "ordersWithoutMessage"]);
const inTable = (key, v) => missing(v) && some.has(key) ? "–" : num(v);
const always = new Set(["sent", "accepted", "delivered", "effects", "lost", "redelivered"]);

function cell(row, cls, v) {
  const text = missing(v) ? t("unknown") : num(v);
  set(row.cells[1], text);
  row.dataset.v = missing(v) ? "doubt" : v > 0 && cls ? cls : "";
}

export class Ledger {
  constructor(table) {
    this.body = table.tBodies[0];
    this.rows = new Map();
    for (const [key, cls] of rows) {
      const row = el("tr", "", el("th", "", t("count_" + key)), el("td", "num", ""));
      row.dataset.count = key;
      row.cells[0].scope = "row";
      row.title = t("means_" + key);
      // A table stays one for a screen reader, though it is laid out as tiles.
      row.setAttribute("role", "row");
      row.cells[0].setAttribute("role", "rowheader");
      row.cells[1].setAttribute("role", "cell");
      this.rows.set(key, { row, cls });
      this.body.append(row);
    }
  }
  update(lane) {
    for (const [key, { row, cls }] of this.rows) {
      const v = lane.counts[key];
      cell(row, cls, v);
      row.hidden = !always.has(key) && !(v > 0);
    }
  }
}

// facts are the lines about the broker and the processes.
export function facts(lane) {
  const s = lane.structure, out = [];
  if (s?.down) out.push([t("broker"), t("noAnswer")]);
  const say = (name, v) => out.push([name, missing(v) ? t("unknown") : typeof v === "number" ? num(v) : String(v)]);
  if (s?.kind === "list") say("LLEN " + (s.key ?? ""), s.length);
  else if (s?.kind === "pubsub") say(t("receivers"), s.receivers);
  else if (s?.kind === "stream") { say("XLEN " + (s.key ?? ""), s.length); say(t("lagName"), s.lag); }
  else if (s?.kind === "rabbitmq") { say(t("exchange"), s.exchange === "" ? s.type : `${s.exchange ?? "?"} (${s.type ?? "?"})`); say("ready", s.ready); say("unacked", s.unacked); }
  else if (s?.kind === "kafka") {
    for (const p of s.partitions ?? []) {
      const owner = consumers(lane).find((c) => c.n === p.process);
      out.push([t("partitionN", p.n), `${t("end", num(p.end))}, ${t("committed", num(p.committed))}, ${owner ? nameOf(owner) : t("ownerUnknown")}`]);
    }
  } else if (s) { say(t("ready"), s.ready); if ("unacked" in s) say(t("inFlight"), s.unacked); }
  for (const p of lane.processes) {
    const state = p.alive === null || p.alive === undefined ? t("unknown") : killed(p) ? t("isDead") : !p.alive ? t("isStopped") : p.frozen ? t("isFrozen") : p.slow ? t("isSlow") : t("isAlive");
    const pending = p.role === "consumer" ? pendingOf(lane, p.n) : undefined;
    out.push([nameOf(p), pending === undefined ? state : `${state}, ${t("pending")} ${num(pending)}`]);
  }
  return out;
}

export function showFacts(table, lane) {
  const body = table.tBodies[0], all = facts(lane);
  while (body.rows.length > all.length) body.deleteRow(-1);
  all.forEach(([name, value], i) => {
    const row = body.rows[i] ?? body.appendChild(el("tr", "", el("th", ""), el("td", "")));
    row.cells[0].scope = "row";
    set(row.cells[0], name);
    set(row.cells[1], value);
  });
}

// summary is a lane in a sentence, for who listens to the page.
export function summary(lane) {
  const c = lane.counts, parts = [t("sumSent", num(c.sent)), t("sumEffects", num(c.effects))];
  parts.push(t("sumLost", num(c.lost)));
  if (c.redelivered > 0) parts.push(t("sumAgain", num(c.redelivered)));
  if (c.unknown > 0) parts.push(t("sumUnknown", num(c.unknown)));
  return `${lane.info.setting}: ${parts.join(t("comma"))}`;
}

// compare fills the table of a race: a row for each count, a column for each lane.
export function compare(table, lanes) {
  const head = table.tHead.rows[0];
  const columns = [t("count"), ...lanes.map((l) => l.info.setting)];
  head.replaceChildren(...columns.map((c, i) => { const th = el("th", i ? "num" : "", c); th.scope = "col"; return th; }));
  const told = rows.filter(([key]) => always.has(key) || lanes.some((l) => l.counts[key] > 0));
  table.tBodies[0].replaceChildren(...told.map(([key, cls]) => {
    const name = el("th", "", t("count_" + key));
    name.scope = "row";
    return el("tr", "", name, ...lanes.map((l) => {
      const v = l.counts[key], td = el("td", "num", inTable(key, v));
      if (v > 0 && cls) td.dataset.v = cls;
      return td;
    }));
  }));
}

export const findingsOf = (lane) => lane.ended?.findings ?? [];
