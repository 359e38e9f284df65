// What happened, in order, and the moment that is shown of it. Live or from a
// recording, paused or not: the picture is what the model is at this moment.
import { newLane, record, lose, find, doubt, close, blur, count } from "model";

const tooMany = 240000; // items; a show that goes on for hours keeps every record, and fewer looks

// named is what a structure is called: a broker that does not answer keeps its
// names, and no number.
function named(structure) {
  const { key, channel, group, exchange, type, queue, topic } = structure ?? {};
  return { key, channel, group, exchange, type, queue, topic };
}

export class Timeline {
  constructor(infos) {
    this.infos = infos;
    this.items = [];
    this.end = 0; // the last moment that something is known of
    this.reset();
  }

  reset() {
    this.lanes = this.infos.map(newLane);
    this.head = 0;
    this.index = 0;
  }

  // take adds what one event of the stream says.
  take(tick) {
    if (tick.state === "running") this.begin ??= tick.at; // before that brokers start, and nothing is known yet
    let time = this.items.length ? this.items[this.items.length - 1].time : 0;
    const add = (at, lane, kind, value) => {
      time = Math.max(time, at);
      this.items.push({ time, lane, kind, value });
    };
    for (const part of tick.lanes ?? []) {
      if (!this.lanes[part.lane]) continue;
      for (const r of part.records ?? []) add(r[0], part.lane, "record", r);
      if (part.flow) add(tick.at, part.lane, "flow", part.flow);
      const { records, flow, ...state } = part;
      if (Object.keys(state).length > 1) add(tick.at, part.lane, "state", state);
    }
    this.end = Math.max(this.end, tick.at, time);
    if (this.items.length > tooMany) this.thin();
  }

  // thin drops every second look at broker and counts in the older half.
  thin() {
    const half = this.items.length >> 1;
    let n = 0, gone = 0;
    this.items = this.items.filter((item, i) => {
      const dull = i < half && item.kind === "state" && Object.keys(item.value).every((k) => k === "lane" || k === "counts" || k === "structure");
      const drop = dull && n++ % 2 === 1;
      if (drop && i < this.index) gone++;
      return !drop;
    });
    this.index -= gone;
  }

  // advance shows a later moment; moved is told what moved on the way, lane by lane.
  advance(to, moved) {
    while (this.index < this.items.length && this.items[this.index].time <= to) this.apply(this.items[this.index++], moved);
    this.head = Math.max(this.head, Math.min(to, this.end));
  }

  // seek shows any moment, without what moved on the way.
  seek(to) {
    if (to < this.head) this.reset();
    this.advance(to, null);
    this.head = Math.max(0, Math.min(to, this.end));
  }

  // step shows the next record of a message, or the next thing that was done.
  step(moved) {
    for (let i = this.index; i < this.items.length; i++) {
      const { kind, value, time } = this.items[i];
      if (kind === "record" || value.strikes || value.lost?.length || value.ended) {
        while (this.index <= i) this.apply(this.items[this.index++], moved);
        this.head = time;
        return true;
      }
    }
    this.advance(this.end, moved);
    return false;
  }

  apply({ time, lane: n, kind, value }, moved) {
    const lane = this.lanes[n];
    lane.at = time;
    const tell = (move) => { if (move && moved) moved(n, move); };
    if (kind === "record") return tell(record(lane, value));
    if (kind === "flow") {
      blur(lane);
      for (const [event, k] of Object.entries(value)) count(lane, event, time, k);
      return;
    }
    if (value.counts) lane.counts = value.counts;
    if ("structure" in value) lane.structure = value.structure?.down ? { ...named(lane.structure), ...value.structure } : value.structure;
    if (value.processes) lane.processes = value.processes;
    for (const s of value.strikes ?? []) lane.strikes.push(s);
    for (const [id, place] of value.lost ?? []) tell(lose(lane, id, place));
    for (const id of value.found ?? []) find(lane, id);
    for (const id of value.doubt ?? []) doubt(lane, id);
    for (const key of ["state", "error", "guarantee", "available", "struck"]) if (key in value) lane[key] = value[key];
    if (!value.ended) return;
    lane.ended = value.ended;
    close(lane, value.ended);
    lane.counts = { ...lane.counts, ...value.ended.counts };
    for (const [id, place] of value.ended.lost ?? []) tell(lose(lane, id, place));
  }

  // of is all that the timeline holds of a message, and what was done beside it.
  of(n, id) {
    const records = [], strikes = [];
    for (const item of this.items) {
      if (item.lane !== n) continue;
      if (item.kind === "record" && item.value[3] === id) records.push(item.value);
      else if (item.kind === "state") strikes.push(...(item.value.strikes ?? []));
    }
    return { records, strikes };
  }
}
