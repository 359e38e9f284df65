// The queues' own structures, each drawn from what its broker said. A number
// that the broker did not tell is a question mark, and its cells are hatched.
import { t, missing, short } from "parts";
import { inPicture, killed, alive } from "model";
import { kindOf, into } from "places";
import { write, box, line, disc, hatch, badge } from "shapes";

const cellWidth = 19;

// pipe is a row of cells, the next one to go at the right.
function pipe(g, c, r, n, { past = 0, ends = true } = {}) {
  box(g, r, { fill: c.pipe, stroke: c.rule, round: ends ? 9 : 5, width: 1.2 });
  const fit = Math.max(1, Math.floor((r.w - 12) / cellWidth)), at = (j) => ({ x: r.x + r.w - 6 - (j + 1) * cellWidth + 1.5, y: r.y + 4, w: cellWidth - 3, h: r.h - 8 });
  if (missing(n)) {
    hatch(g, { x: r.x + 4, y: r.y + 4, w: r.w - 8, h: r.h - 8 }, c.rule);
    badge(g, "?", r.cx, r.cy, { fill: c.card, colour: c.doubt, size: 14, align: "center" });
    return fit;
  }
  const more = n > fit - past ? n - (fit - past) + 2 : 0, cells = more ? fit - 2 : fit;
  for (let j = 0; j < cells; j++) {
    const read = j < past, taken = !read && j - past < n;
    box(g, at(j), { fill: read ? c.none : taken ? c.cell : undefined, stroke: taken ? c.e2e : c.rule, round: 4, width: taken ? 1.2 : .7, dash: taken || read ? undefined : [2, 3] });
  }
  if (more) badge(g, "+" + short(more), r.x + 6, r.cy, { fill: c.e2e, colour: c.card });
  return fit;
}

const inPipe = (r, k, past = 0, n = 0) => {
  const all = Math.floor((r.w - 12) / cellWidth), fit = n > all - past ? all - 2 : all;
  return k + past < fit ? { x: r.x + r.w - 6 - (k + past + .5) * cellWidth, y: r.y + r.h / 2 } : null;
};

const band = (q, h, dy = 0) => ({ x: q.x, y: q.cy - h / 2 + dy, w: q.w, h, cx: q.x + q.w / 2, cy: q.cy + dy });

function caption(g, c, r, left, right) {
  const w = right ? write(g, right, r.x + r.w - 2, r.y - 11, { size: 12.5, weight: 650, colour: c.ink, align: "right" }) : 0;
  write(g, left, r.x + 2, r.y - 11, { size: 11.5, colour: c.muted, room: r.w - w - 14 });
}
function footnote(g, c, r, left, right) {
  const w = right ? write(g, right, r.x + r.w - 2, r.y + r.h + 11, { size: 11, colour: c.muted, align: "right" }) : 0;
  write(g, left, r.x + 2, r.y + r.h + 11, { size: 11, colour: c.muted, room: r.w - w - 14 });
}

const amount = (name, n) => name + " " + (missing(n) ? "?" : n.toLocaleString("en-GB"));

const list = {
  rect: (l) => band(l.queue, 30),
  draw(g, c, l, lane) {
    const s = lane.structure ?? {}, r = list.rect(l);
    pipe(g, c, r, s.length);
    caption(g, c, r, s.key ?? t("list"), amount("LLEN", s.length));
    footnote(g, c, r, "LPUSH →", s.processing ? "BLMOVE →" : "BRPOP →");
  },
  slot: (l, lane, k) => inPipe(list.rect(l), k, 0, lane.structure?.length),
};

const others = { "nats": "stream", "postgres": "rows", "memory": "ring", "redis-zset": "zset" };
const other = {
  rect: (l) => band(l.queue, 30),
  draw(g, c, l, lane) {
    const s = lane.structure ?? {}, r = other.rect(l);
    pipe(g, c, r, s.ready, { ends: lane.info.backend !== "postgres" });
    caption(g, c, r, t("kind_" + (others[lane.info.backend] ?? "queue")), amount(t("ready"), s.ready));
    if ("unacked" in s) footnote(g, c, r, "", amount(t("inFlight"), s.unacked));
  },
  slot: (l, lane, k) => inPipe(other.rect(l), k, 0, lane.structure?.ready),
};

const pubsub = {
  rect: (l) => ({ x: l.queue.cx, y: l.queue.cy - 4, r: 26 }),
  door: (l) => l.upright ? { x: l.queue.cx, y: l.queue.cy - 49 } : { x: l.queue.cx - 45, y: l.queue.cy },
  draw(g, c, l, lane) {
    const s = lane.structure ?? {}, r = pubsub.rect(l), living = inPicture(lane).filter((p) => p.alive !== false).length;
    for (const [i, p] of inPicture(lane).entries()) {
      if (!l.boxes[i]) continue;
      const to = into(l, l.boxes[i]);
      // Only where the broker counts as many as there are is it known that this one hears.
      const hears = p.alive !== false && s.receivers >= living;
      line(g, [[r.x, r.y], [to.x, to.y]], { stroke: killed(p) ? c.lost : hears ? c.e2e : c.muted, width: 1.6, dash: hears ? undefined : [3, 5] });
    }
    for (const [k, alpha] of [[44, .12], [34, .2]]) { g.globalAlpha = alpha; disc(g, r.x, r.y, k, { fill: c.e2e }); }
    g.globalAlpha = 1;
    disc(g, r.x, r.y, r.r, { fill: c.card, stroke: c.e2e, width: 2 });
    write(g, missing(s.receivers) ? "?" : String(s.receivers), r.x, r.y - 3, { size: 17, weight: 700, colour: s.receivers === 0 ? c.lost : c.ink, align: "center" });
    write(g, t("hear"), r.x, r.y + 11, { size: 9.5, colour: c.muted, align: "center" });
    const nobody = s.receivers === 0;
    write(g, s.channel ?? t("channel"), l.queue.x + 2, l.queue.y + 4, { size: 11.5, colour: c.muted, room: l.queue.w * .4 });
    write(g, nobody ? t("nobodyListens") : t("storesNothing"), l.queue.x + l.queue.w, l.broker.y + 16, { size: 11.5, colour: nobody ? c.lost : c.muted, weight: nobody ? 650 : 400, align: "right", room: l.queue.w * .6 });
  },
  slot: (l, lane, k) => { const r = pubsub.rect(l); return k < 6 ? { x: r.x - 15 + k * 6, y: r.y + 34 } : null; },
};

// A stream keeps what was read; a cursor says up to where.
const stream = {
  rect: (l) => band(l.queue, 30),
  past(l, lane) {
    const s = lane.structure ?? {};
    if (missing(s.length) || missing(s.lag)) return 0;
    const fit = Math.floor((l.queue.w - 12) / cellWidth);
    return Math.max(0, Math.min(Math.floor(fit * .45), s.length - s.lag));
  },
  draw(g, c, l, lane) {
    const s = lane.structure ?? {}, r = stream.rect(l), past = stream.past(l, lane);
    pipe(g, c, r, missing(s.lag) ? s.length : s.lag, { past, ends: false });
    const x = r.x + r.w - 6 - past * cellWidth;
    line(g, [[x, r.y - 3], [x, r.y + r.h + 3]], { stroke: c.publish, width: 2.2 });
    caption(g, c, r, s.key ?? t("stream"), amount("XLEN", s.length));
    footnote(g, c, r, "XADD →   " + (missing(s.lag) ? t("lagUnknown") : t("lag", short(s.lag))), "▏" + t("cursor", s.group ?? ""));
  },
  slot: (l, lane, k) => inPipe(stream.rect(l), k, stream.past(l, lane), lane.structure?.lag ?? lane.structure?.length),
};

const rabbitmq = {
  rect(l) {
    const x = l.queue.x + Math.max(64, Math.min(150, l.queue.w * .3));
    return { x, y: l.queue.cy - 34, w: l.queue.x + l.queue.w - x, h: 28, cx: x + (l.queue.x + l.queue.w - x) / 2, cy: l.queue.cy - 20 };
  },
  draw(g, c, l, lane) {
    const s = lane.structure ?? {}, r = rabbitmq.rect(l), ex = l.queue.x + 26, ey = r.cy;
    line(g, [[ex, ey], [r.x - 2, r.cy]], { stroke: c.muted, width: 1.6, arrow: true });
    if (s.key) write(g, s.key, (ex + 20 + r.x) / 2, ey - 9, { size: 10.5, colour: c.muted, align: "center", room: r.x - ex - 26 });
    g.beginPath();
    for (let i = 0; i < 6; i++) g.lineTo(ex + 27 * Math.cos(i * Math.PI / 3), ey + 25 * Math.sin(i * Math.PI / 3));
    g.closePath();
    g.fillStyle = c.card; g.fill();
    g.strokeStyle = c.publish; g.lineWidth = 2; g.stroke();
    write(g, s.type ?? "?", ex, ey, { size: 10.5, weight: 650, colour: c.ink, align: "center", room: 48 });
    write(g, t("exchange"), ex, ey + 35, { size: 11, colour: c.muted, align: "center" });
    pipe(g, c, r, s.ready);
    caption(g, c, r, s.queue ?? t("queue"), amount("ready", s.ready));
    const u = { ...r, y: r.y + 42, cy: r.cy + 42, h: 22 };
    box(g, u, { stroke: c.publish, round: 7, width: 1.2, dash: [4, 3] });
    const fit = Math.floor((u.w - 12) / 14);
    for (let j = 0; j < Math.min(fit, s.unacked ?? 0); j++) disc(g, u.x + u.w - 12 - j * 14, u.y + 11, 4, { stroke: c.publish, width: 1.6 });
    if (missing(s.unacked)) hatch(g, u, c.rule, 7);
    footnote(g, c, u, t("unackedIs"), amount("unacked", s.unacked));
  },
  slot: (l, lane, k) => inPipe(rabbitmq.rect(l), k, 0, lane.structure?.ready),
  via: (l) => ({ x: l.queue.x + 26, y: rabbitmq.rect(l).cy }), // every message passes the exchange
  door: (l) => ({ x: l.queue.x + 4, y: rabbitmq.rect(l).cy }),
};

// The ledger does not tell a message's partition, so none is drawn within one:
// the cells are the broker's own offsets.
const kafka = {
  rows(l, lane) {
    const n = Math.max(1, lane.structure?.partitions?.length ?? 1), h = Math.min(34, (l.queue.h - 14) / n), x = l.queue.x + 56;
    return Array.from({ length: n }, (_, i) => ({ x, y: l.queue.cy - n * h / 2 + i * h + 9, w: l.queue.x + l.queue.w - x, h: 16, cy: l.queue.cy - n * h / 2 + i * h + 17 }));
  },
  draw(g, c, l, lane) {
    const s = lane.structure ?? {}, all = inPicture(lane);
    write(g, t("topic", s.topic ?? "?"), l.queue.x + l.queue.w, l.broker.y + 16, { size: 11.5, colour: c.muted, align: "right", room: l.queue.w * .5 });
    for (const [i, r] of kafka.rows(l, lane).entries()) {
      const p = s.partitions?.[i] ?? { n: i }, who = all.findIndex((one) => one.n === p.process), colour = who < 0 ? c.muted : c["c" + (who % 4 + 1)];
      write(g, "P" + p.n, l.queue.x + 34, r.cy, { size: 11.5, weight: 650, colour: c.ink });
      box(g, r, { fill: c.pipe, stroke: c.rule, round: 3 });
      const size = 11, fit = Math.floor(r.w / size), lag = missing(p.end) || missing(p.committed) ? null : Math.max(0, p.end - p.committed);
      if (lag === null) hatch(g, r, c.rule);
      else {
        const first = Math.min(lag, fit - 1);
        for (let j = 0; j < Math.min(fit, p.end); j++) {
          const x = r.x + 1 + j * size;
          box(g, { x: x + .5, y: r.y + 2.5, w: size - 2, h: r.h - 5 }, { fill: j < lag ? c.e2e : c.none, round: 2 });
        }
        const x = r.x + .5 + first * size;
        line(g, [[x, r.y - 3], [x, r.y + r.h + 3]], { stroke: c.publish, width: 2.2 });
      }
      const left = t("end", missing(p.end) ? "?" : short(p.end)), right = t("committed", missing(p.committed) ? "?" : short(p.committed));
      write(g, left, r.x + 1, r.y - 6, { size: 9.5, colour: c.muted });
      write(g, right + (lag ? " · " + t("lag", short(lag)) : ""), r.x + r.w - 1, r.y - 6, { size: 9.5, colour: lag ? c.publish : c.muted, align: "right" });
      if (who >= 0 && l.boxes[who]) {
        const to = into(l, l.boxes[who]), from = l.upright ? [r.x + r.w + 4, r.cy] : [r.x + r.w + 2, r.cy];
        g.globalAlpha = .75;
        line(g, [from, l.upright ? [r.x + r.w + 4, l.broker.y + l.broker.h] : [l.broker.x + l.broker.w + 4, r.cy], [to.x, to.y]], { stroke: colour, width: 2, dash: alive(lane, p.process) === false ? [3, 5] : undefined });
        g.globalAlpha = 1;
      }
      disc(g, r.x + r.w + 2, r.cy, 3.5, { fill: who < 0 ? c.card : colour, stroke: colour });
    }
  },
  slot(l, lane, k) {
    const tall = Math.max(1, Math.floor((l.queue.h - 26) / 14)), x = l.queue.x + 8 + Math.floor(k / tall) * 13;
    return k < tall * 2 ? { x, y: l.queue.cy - (tall - 1) * 7 + (k % tall) * 14 } : null;
  },
  // leave is the row of the partition that a consumer owns, where it owns one.
  leave(l, lane, process) {
    const rows = kafka.rows(l, lane), mine = (lane.structure?.partitions ?? []).map((p, i) => p.process === process ? i : -1).filter((i) => i >= 0);
    const r = rows[mine.length === 1 ? mine[0] : -1];
    return r ? { x: r.x + r.w, y: r.cy } : null;
  },
};

const pictures = { list, pubsub, stream, rabbitmq, kafka };
export const pictureOf = (lane) => pictures[kindOf(lane)] ?? other;

// pendingOf is what the broker says that a consumer holds: null is not told,
// undefined is not kept by such a queue.
export function pendingOf(lane, process) {
  const s = lane.structure;
  if (!s) return undefined;
  const rows = s.kind === "stream" ? s.pending : s.kind === "list" ? s.processing : undefined;
  if (rows === undefined) return undefined;
  if (rows === null) return null;
  const row = rows.find((p) => p.process === process);
  return row ? row.n ?? row.length ?? null : 0;
}
export const pendingWord = (lane) => lane.structure?.kind === "list" ? t("processing") : t("pending");
