// Where things stand in the picture of a lane: from left to right where there
// is room, from the top down where there is not.
import { inPicture } from "model";

export const radius = 6;
const pad = 12;
const center = (r) => ({ ...r, cx: r.x + r.w / 2, cy: r.y + r.h / 2 });
const clamp = (v, low, high) => Math.min(high, Math.max(low, v));

// kindOf is which picture a lane's queue has.
export function kindOf(lane) {
  const kind = lane.structure?.kind ?? lane.info.kind;
  return ["list", "pubsub", "stream", "rabbitmq", "kafka"].includes(kind) ? kind : "other";
}

const partitions = (lane) => Math.max(1, lane.structure?.partitions?.length ?? 1);

// layout says where everything is in w pixels, and how high that makes it.
export function layout(lane, w) {
  const n = Math.max(1, inPicture(lane).length);
  const rows = kindOf(lane) === "kafka" ? partitions(lane) : 0;
  const inner = Math.max(rows * 34 + 30, { rabbitmq: 124, pubsub: 116 }[kindOf(lane)] ?? 90);
  return w < 640 ? upright(w, n, inner) : lying(w, n, inner);
}

function lying(w, n, inner) {
  const gap = clamp(w * .045, 30, 66);
  const b = clamp(w * .1, 78, 120), d = clamp(w * .1, 78, 116), c = clamp(w * .2, 140, 230);
  const h = Math.max(inner + 64, n * 80 + 16) + 2 * pad;
  const cy = h / 2;
  const broker = { x: pad + b + gap, y: pad, w: w - 2 * pad - b - c - d - 3 * gap, h: h - 2 * pad };
  const each = clamp((h - 2 * pad - (n - 1) * 10) / n, 56, 84);
  const top = cy - (n * each + (n - 1) * 10) / 2;
  const boxes = Array.from({ length: n }, (_, i) => center({ x: broker.x + broker.w + gap, y: top + i * (each + 10), w: c, h: each }));
  return complete({
    w, h, upright: false, gap,
    buyers: center({ x: pad, y: cy - 52, w: b, h: 104 }), broker: center(broker), boxes,
    database: center({ x: w - pad - d, y: cy - 52, w: d, h: 104 }),
  });
}

function upright(w, n, inner) {
  const gap = 34, full = { x: pad, w: w - 2 * pad };
  let y = pad;
  const row = (h) => { const r = center({ ...full, y, h }); y += h + gap; return r; };
  const buyers = row(48), broker = row(inner + 56);
  const columns = n > 2 && w < 480 ? 2 : n, lines = Math.ceil(n / columns), each = (full.w - (columns - 1) * 8) / columns;
  const boxes = Array.from({ length: n }, (_, i) => center({ x: pad + (i % columns) * (each + 8), y: y + Math.floor(i / columns) * 76, w: each, h: 68 }));
  y += lines * 76 - 8 + gap;
  const database = row(60);
  return complete({ w, h: y - gap + pad, upright: true, gap, buyers, broker, boxes, database });
}

function complete(l) {
  const b = l.broker;
  l.queue = center({ x: b.x + 12, y: b.y + 31, w: b.w - 24, h: b.h - 62 });
  l.strip = center({ x: b.x + 12, y: b.y + b.h - 26, w: b.w - 24, h: 20 });
  l.entry = l.upright ? { x: b.cx, y: b.y } : { x: b.x, y: l.queue.cy };
  l.leave = l.upright ? { x: b.cx, y: b.y + b.h } : { x: b.x + b.w, y: l.queue.cy };
  l.out = l.upright ? { x: l.buyers.cx, y: l.buyers.y + l.buyers.h } : { x: l.buyers.x + l.buyers.w, y: l.buyers.cy };
  return l;
}

// boxOf is the picture of a consumer, by its process.
export function boxOf(l, lane, process) {
  const i = inPicture(lane).findIndex((p) => p.n === process);
  return l.boxes[i] ?? null;
}

// into and outOf are where a consumer's box, or the database, is entered and left.
export const into = (l, r) => l.upright ? { x: r.cx, y: r.y } : { x: r.x, y: r.cy };
export const outOf = (l, r) => l.upright ? { x: r.cx, y: r.y + r.h } : { x: r.x + r.w, y: r.cy };

// heldAt is the place of the k-th message that a consumer holds, or null where
// there is no room to show it.
export function heldAt(r, k) {
  const step = 2 * radius + 5, fit = Math.floor((r.w - 16) / step), rows = r.h >= 78 ? 2 : 1;
  if (k >= fit * rows) return null;
  return { x: r.x + 14 + (k % fit) * step, y: r.y + r.h - 14 - Math.floor(k / fit) * (step - 1) };
}
export const heldFit = (r) => Math.floor((r.w - 16) / (2 * radius + 5)) * (r.h >= 78 ? 2 : 1);

// gateAt is where the k-th message waits for the queue's answer.
export function gateAt(l, k) {
  const i = [0, 1, -1, 2, -2][k % 5], deep = Math.floor(k / 5) % 3;
  return l.upright ? { x: l.entry.x + i * 16, y: l.entry.y - 9 - deep * 9 } : { x: l.entry.x - 9 - deep * 10, y: l.entry.y + i * 16 };
}

// unknownAt is where those stand of which nobody knows whether they are in.
export function unknownAt(l, k) {
  const i = k % 7;
  return l.upright ? { x: l.broker.x + 12 + i * 16, y: l.broker.y - 12 } : { x: l.broker.x - 13, y: l.broker.y + 12 + i * 17 };
}
