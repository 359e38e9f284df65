// The picture of a lane: its processes, its queue, and the messages on their
// way. Places follow the ledger; the way between two is the only thing drawn
// that nobody measured.
import { t, missing, short, still, colours, nameOf } from "parts";
import { rate, inPicture, killed, stopped, theBroker, theDatabase, inDoubt } from "model";
import { layout, radius, boxOf, into, outOf, heldAt, heldFit, gateAt, unknownAt } from "places";
import { write, box, line, disc, cross, dot, person, cylinder, badge } from "shapes";
import { pictureOf, pendingOf, pendingWord } from "queues";

const walk = 460; // ms from one place to the next
const dotsAtMost = 160; // messages drawn one by one
const flowing = 36, calm = 22; // messages a second from and below which they are drawn as a flow

export class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    this.g = canvas.getContext("2d");
    this.sprites = new Map();
    this.hits = [];
    this.flow = false;
    this.serial = 0;
    this.chosen = null;
  }

  // move sends a message's dot to where the ledger says that it went.
  move(lane, m) {
    if (still()) return;
    let s = this.sprites.get(m.id);
    if (this.flow && !s && m.to !== "lost") return;
    if (!s) {
      if (this.sprites.size >= dotsAtMost) this.drop();
      s = { id: m.id, place: "buyers", process: m.process, path: [], from: null, progress: 1, order: ++this.serial, fade: 1 };
      this.sprites.set(m.id, s);
    }
    if (m.via && s.place !== m.via && !s.path.some((p) => p.to === m.via)) s.path.push({ to: m.via, process: m.process, quick: true });
    if (m.to === "queue" && s.place !== "held" && pictureOf(lane).via) s.path.push({ to: "via", process: m.process, quick: true });
    s.path.push(m);
    if (s.path.length > 8) s.path.splice(0, s.path.length - 8);
  }

  drop() {
    for (const [id, s] of this.sprites) if (s.place === "database" || s.place === "rejected" || s.place === "dead") { this.sprites.delete(id); return; }
    this.sprites.delete(this.sprites.keys().next().value);
  }

  // settle puts every dot at its place at once: after a leap in time, and where
  // no motion is wanted.
  settle(lane) {
    this.sprites.clear();
    const put = (map, place) => {
      for (const m of map.values()) {
        if (this.sprites.size >= dotsAtMost) return;
        this.sprites.set(m.id, { id: m.id, place, process: m.process, path: [], from: null, progress: 1, order: ++this.serial, fade: 1, twice: m.twice });
      }
    };
    put(lane.gate, "gate");
    put(lane.unknown, "unknown");
    put(lane.held, "held");
    put(lane.waiting, "queue");
  }

  resize(lane, scale) {
    const w = this.canvas.clientWidth / scale, l = layout(lane, w), ratio = Math.min(3, devicePixelRatio || 1);
    const pw = Math.round(w * scale * ratio), ph = Math.round(l.h * scale * ratio);
    if (this.canvas.width !== pw || this.canvas.height !== ph) {
      this.canvas.width = pw;
      this.canvas.height = ph;
      this.canvas.style.height = Math.round(l.h * scale) + "px";
    }
    this.g.setTransform(ratio * scale, 0, 0, ratio * scale, 0, 0);
    this.scale = scale;
    return l;
  }

  // draw draws the lane as it is; dt is the time since the last picture in ms.
  draw(lane, dt, scale = 1) {
    if (this.canvas.clientWidth < 160) return; // it is not on the page now
    const l = this.resize(lane, scale), g = this.g, c = colours();
    if (still() || (lane.ended && !this.moving())) this.settle(lane); // at the end nobody is in doubt who is not so to the ledger
    const now = rate(lane, "intent", lane.at) + rate(lane, "delivered", lane.at);
    if (!this.flow && now > 2 * flowing) { this.flow = true; this.sprites.clear(); }
    else if (this.flow && now < 2 * calm) { this.flow = false; this.settle(lane); }
    g.clearRect(0, 0, l.w, l.h);
    this.hits = [];
    this.phase = still() ? 0 : (this.phase ?? 0) + dt;
    this.wires(g, c, l, lane);
    this.buyers(g, c, l, lane);
    this.broker(g, c, l, lane);
    inPicture(lane).forEach((p, i) => this.consumer(g, c, l, lane, p, l.boxes[i], i));
    this.database(g, c, l, lane);
    this.lost(g, c, l, lane);
    this.dots(g, c, l, lane, dt);
  }

  wires(g, c, l, lane) {
    const list = inPicture(lane), bare = pictureOf(lane).leave !== undefined || lane.structure?.kind === "pubsub";
    const living = Math.max(1, list.filter((p) => p.alive !== false).length);
    const wire = (a, b, event, share = 1) => {
      const v = rate(lane, event, lane.at) * share;
      line(g, [[a.x, a.y], [b.x, b.y]], { stroke: c.wire, width: 1.6, arrow: !this.flow });
      if (!this.flow || v <= 0) return;
      const width = Math.min(18, 2 + 2.6 * Math.log10(1 + v));
      g.globalAlpha = .3;
      line(g, [[a.x, a.y], [b.x, b.y]], { stroke: c.e2e, width });
      g.globalAlpha = .95;
      line(g, [[a.x, a.y], [b.x, b.y]], { stroke: c.e2e, width: Math.max(2, width * .55), dash: [5, 7], shift: -this.phase / 18 });
      g.globalAlpha = 1;
    };
    wire(l.out, l.entry, "intent");
    this.door = pictureOf(lane).door?.(l);
    for (const [i, p] of list.entries()) {
      const r = l.boxes[i], share = p.alive === false ? 0 : 1 / living;
      if (!r) continue;
      if (!bare || this.flow) wire(l.leave, into(l, r), "delivered", share);
      wire(outOf(l, r), l.upright ? { x: r.cx, y: l.database.y } : into(l, l.database), "effect", share);
    }
    if (!this.flow) return;
    const tell = (event, x, y, align = "center") => badge(g, t("perSecond", short(rate(lane, event, lane.at))), x, y, { fill: c.soft, colour: c["soft-ink"], align });
    if (l.upright) {
      tell("intent", l.out.x + 12, l.out.y + l.gap / 2, "left");
      tell("effect", l.database.x + l.database.w, l.database.y - l.gap / 2, "right");
    } else {
      tell("intent", l.buyers.cx, l.buyers.y + l.buyers.h + 14);
      tell("effect", l.database.cx, l.database.y - (killed(theDatabase(lane)) ? 34 : 14));
    }
  }

  buyers(g, c, l, lane) {
    const r = l.buyers, p = lane.processes.findLast((p) => p.role === "producer" || p.role === "both"), dead = killed(p);
    box(g, r, { fill: c.card, stroke: dead ? c.lost : c.rule, round: 10, width: 1.4 });
    const sent = amountOf(lane.counts.sent);
    if (l.upright) {
      for (let i = 0; i < 3; i++) person(g, r.x + 24 + i * 19, r.cy + 1, 15, i === 1 ? c.e2e : c.muted);
      write(g, t("buyers"), r.x + 86, r.cy - 8, { size: 12.5, weight: 650, colour: c.ink });
      write(g, t("sentN", sent), r.x + 86, r.cy + 9, { size: 11.5, colour: c.muted });
    } else {
      for (const [i, dx] of [[0, -19], [2, 19], [1, 0]]) person(g, r.cx + dx, r.y + 31, i === 1 ? 21 : 16, i === 1 ? c.e2e : c.muted);
      write(g, t("buyers"), r.cx, r.y + 64, { size: 12.5, weight: 650, colour: c.ink, align: "center", room: r.w - 8 });
      write(g, t("sentN", sent), r.cx, r.y + 83, { size: 11.5, colour: c.muted, align: "center", room: r.w - 8 });
    }
    if (dead) death(g, c, r);
  }

  broker(g, c, l, lane) {
    const r = l.broker, p = theBroker(lane), dead = killed(p), frozen = !dead && p?.frozen === true;
    box(g, r, { fill: c.card, stroke: dead ? c.lost : frozen ? c.ice : c.rule, round: 12, width: dead || frozen ? 2.4 : 1.4, dash: dead ? [6, 4] : undefined });
    if (frozen) { g.globalAlpha = .16; box(g, r, { fill: c.ice, round: 12 }); g.globalAlpha = 1; }
    const name = p ? nameOf(p) : lane.info.kind === "memory" ? t("inTheProcess") : t("broker");
    const state = dead ? t("isDead") : frozen ? t("isFrozen") : "";
    let taken = 0;
    if (state) taken = badge(g, state, r.x + r.w - 12, r.y + 16, { fill: dead ? c.lost : c.ice, colour: c.card, align: "right" });
    write(g, name, r.x + 14, r.y + 16, { size: 12.5, weight: 650, colour: dead ? c.lost : c.ink, room: r.w - taken - 34 });
    g.globalAlpha = dead ? .38 : 1;
    if (this.door) line(g, [[l.entry.x, l.entry.y], [this.door.x, this.door.y]], { stroke: c.wire, width: 1.6, arrow: true });
    pictureOf(lane).draw(g, c, l, lane);
    g.globalAlpha = 1;
  }

  consumer(g, c, l, lane, p, r, i) {
    if (!r) return;
    const dead = killed(p), over = stopped(p), frozen = p.alive !== false && p.frozen === true, tint = over ? c.none : c["c" + (i % 4 + 1)];
    box(g, r, { fill: c.card, stroke: dead ? c.lost : frozen ? c.ice : c.rule, round: 10, width: dead || frozen ? 2 : 1.4, dash: dead ? [6, 4] : undefined });
    box(g, { x: r.x + 1, y: r.y + 9, w: 4, h: r.h - 18 }, { fill: dead ? c.lost : tint, round: 2 });
    const slow = p.slow === true && p.alive !== false, state = dead ? t("isDead") : over ? t("isStopped") : frozen ? t("isFrozen") : slow ? t("isSlow") : "";
    let taken = 0;
    if (state) taken = badge(g, state, r.x + r.w - 8, r.y + 15, { fill: dead ? c.lost : over ? c.none : frozen ? c.ice : c.publish, colour: over ? c["none-ink"] : c.card, align: "right", size: 10 });
    write(g, r.w - taken > 116 ? nameOf(p) : t("consumerShort", i + 1), r.x + 12, r.y + 15, { size: 12, weight: 650, colour: dead ? c.lost : c.ink, room: r.w - taken - 26 });
    const pending = pendingOf(lane, p.n), held = p.holds ?? [...lane.held.values()].filter((m) => m.process === p.n).length;
    const text = pending !== undefined ? `${pendingWord(lane)} ${short(pending)}` : held ? t(dead ? "wasHolding" : "holds", held) : "";
    if (r.h >= 62 || !held) write(g, text, r.x + 12, r.y + 32, { size: 11, colour: c.muted, room: r.w - 20 });
    if (!this.flow && held > heldFit(r)) badge(g, "+" + (held - heldFit(r)), r.x + r.w - 8, r.y + r.h - 13, { fill: c.soft, colour: c["soft-ink"], align: "right", size: 10 });
  }

  database(g, c, l, lane) {
    const r = l.database, p = theDatabase(lane), out = killed(p);
    cylinder(g, r, { fill: c.card, stroke: out ? c.lost : c.done, dash: out ? [6, 4] : undefined });
    const effects = amountOf(lane.counts.effects), doubles = lane.counts.effectDuplicates;
    const name = p ? nameOf(p) : t("database"), colour = out ? c.lost : c.ink;
    if (l.upright) {
      const w = write(g, effects, r.x + 16, r.cy + 3, { size: 19, weight: 700, colour });
      write(g, t("effects"), r.x + 22 + w, r.cy + 5, { size: 11.5, colour: c.muted });
      write(g, name, r.x + r.w - 12, r.y + r.h - 14, { size: 11, colour: c.muted, align: "right", room: r.w / 2 });
      if (doubles > 0) badge(g, t("twiceN", short(doubles)), r.x + r.w - 12, r.y + 24, { fill: c.twice, colour: c.card, size: 10, align: "right" });
      if (out) badge(g, t("isPulled"), r.cx, r.y, { fill: c.lost, colour: c.card, align: "center", size: 10 });
      return;
    }
    write(g, effects, r.cx, r.y + 38, { size: 20, weight: 700, colour, align: "center" });
    write(g, t("effects"), r.cx, r.y + 56, { size: 11, colour: c.muted, align: "center", room: r.w - 10 });
    write(g, name, r.cx, r.y + r.h + 13, { size: 11, colour: c.muted, align: "center", room: r.w + 18 });
    if (doubles > 0) badge(g, t("twiceN", short(doubles)), r.cx, r.y + r.h + 30, { fill: c.twice, colour: c.card, size: 10, align: "center" });
    if (out) badge(g, t("isPulled"), r.cx, r.y - 12, { fill: c.lost, colour: c.card, align: "center", size: 10 });
  }

  // lost draws what is lost where it was lost.
  lost(g, c, l, lane) {
    const groups = new Map();
    for (const m of lane.lost.values()) {
      if (this.sprites.has(m.id)) continue;
      const at = m.place === "handler" && boxOf(l, lane, m.process) ? "h" + m.process : m.place === "wire" || m.place === "unheard" ? m.place : "strip";
      groups.set(at, [...groups.get(at) ?? [], m]);
    }
    for (const [at, all] of groups) {
      const { x, y, room, dx } = this.lostAt(l, lane, all[0]);
      const fit = Math.max(1, Math.floor(room / Math.abs(dx)));
      all.slice(-fit).forEach((m, k) => {
        dot(g, x + k * dx, y, radius, c, { lost: true });
        this.hits.push({ id: m.id, x: x + k * dx, y });
      });
      if (all.length > fit || at === "strip") badge(g, t("lostN", short(all.length)), x + Math.min(fit, all.length) * dx, y, { align: dx < 0 ? "right" : "left", fill: c.bad, colour: c["bad-ink"], size: 10.5 });
    }
    if (lane.dead.size) {
      const y = l.strip.cy, x = l.strip.x + l.strip.w;
      badge(g, t("deadLetters", lane.dead.size), x, y, { fill: c.warn, colour: c["warn-ink"], align: "right" });
    }
  }

  lostAt(l, lane, m) {
    const dx = 2 * radius + 3;
    if (m.place === "handler") {
      const r = boxOf(l, lane, m.process);
      if (r) return { x: r.x + r.w - 14, y: r.y + r.h - 14, room: r.w / 2, dx: -dx };
    }
    if (m.place === "wire") return { x: l.leave.x + (l.upright ? 14 : -34), y: l.leave.y + (l.upright ? l.gap / 2 : 18), room: 84, dx };
    if (m.place === "unheard") return { x: l.queue.cx - 40, y: l.queue.cy + 42, room: l.queue.w / 2 - 20, dx };
    return { x: l.strip.x + 6, y: l.strip.cy, room: l.strip.w - 90, dx };
  }

  // target is where a dot rests; k counts those that rest there before it.
  target(l, lane, s, k) {
    switch (s.place) {
      case "buyers": case "rejected": return { x: l.out.x, y: l.out.y };
      case "gate": return gateAt(l, k);
      case "unknown": return unknownAt(l, k);
      case "via": return pictureOf(lane).via(l);
      case "queue": return pictureOf(lane).slot(l, lane, k);
      case "held": { const r = boxOf(l, lane, s.process); return r && heldAt(r, k); }
      case "database": return l.upright ? { x: l.database.cx, y: l.database.cy + 4 } : { x: l.database.cx, y: l.database.y + l.database.h - 24 };
      case "doubt": return into(l, l.database);
      case "dead": return { x: l.strip.x + l.strip.w - 100, y: l.strip.cy };
      case "lost": { const at = this.lostAt(l, lane, lane.messages.get(s.id) ?? s); return { x: at.x, y: at.y }; }
    }
    return null;
  }

  dots(g, c, l, lane, dt) {
    const counts = new Map(), all = [...this.sprites.values()];
    for (const s of all) this.walk(s, dt);
    all.sort((a, b) => a.entered - b.entered || a.order - b.order);
    for (const s of all) {
      const where = s.place === "held" ? "held" + s.process : s.place, k = counts.get(where) ?? 0;
      counts.set(where, k + 1);
      const to = this.target(l, lane, s, k);
      if (!to) { s.x = undefined; if (s.progress >= 1 && s.place !== "queue" && s.place !== "held") this.sprites.delete(s.id); continue; }
      if (s.x === undefined || this.scaleAt !== l.w) { s.x = to.x; s.y = to.y; s.from = null; }
      if (s.progress < 1 && s.from) {
        const e = s.progress < .5 ? 2 * s.progress ** 2 : 1 - (2 - 2 * s.progress) ** 2 / 2;
        s.x = s.from.x + (to.x - s.from.x) * e;
        s.y = s.from.y + (to.y - s.from.y) * e;
      } else { s.x += (to.x - s.x) * Math.min(1, dt / 90); s.y += (to.y - s.y) * Math.min(1, dt / 90); }
      const m = lane.messages.get(s.id);
      if (s.progress >= 1 && s.path.length === 0 && (s.place === "database" || s.place === "rejected" || s.place === "dead")) s.fade -= dt / 420;
      if (s.progress >= 1 && s.path.length === 0 && s.place === "lost") s.fade = 0;
      if (s.fade <= 0) { this.sprites.delete(s.id); continue; }
      g.globalAlpha = Math.max(0, s.fade);
      const doubt = s.place === "unknown" || s.place === "doubt" || (s.path.length === 0 && m && inDoubt(lane, m));
      dot(g, s.x, s.y, radius, c, { lost: s.place === "lost", twice: s.twice, unknown: doubt, done: s.place === "database", refused: s.place === "rejected" });
      if (s.id === this.chosen) disc(g, s.x, s.y, radius + 6, { stroke: c.link, width: 2 });
      g.globalAlpha = 1;
      this.hits.push({ id: s.id, x: s.x, y: s.y });
    }
    this.scaleAt = l.w;
  }

  walk(s, dt) {
    if (s.progress < 1) s.progress = Math.min(1, s.progress + dt * (1 + s.path.length * .8) / (s.quick ? walk * .6 : walk));
    if (s.progress < 1 || s.path.length === 0) return;
    const next = s.path.shift();
    s.twice = s.twice || next.twice;
    s.from = s.x === undefined ? null : { x: s.x, y: s.y };
    s.place = next.to;
    s.process = next.process;
    s.quick = next.quick;
    s.entered = ++this.serial;
    s.progress = 0;
  }

  moving() { return this.flow || [...this.sprites.values()].some((s) => s.progress < 1 || s.path.length || s.fade < 1 || s.place === "database"); }

  // at is the message under a point of the canvas, or null.
  at(x, y) {
    let best = null, near = 16;
    for (const h of this.hits) {
      const d = Math.hypot(h.x - x / this.scale, h.y - y / this.scale);
      if (d < near) { near = d; best = h.id; }
    }
    return best;
  }
}

const amountOf = (v) => missing(v) ? "?" : short(v);

function death(g, c, r) { cross(g, r.x + r.w - 12, r.y + 12, 5, c.lost, 2.4); }
