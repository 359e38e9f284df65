// Strokes on a canvas that all pictures share. g is a 2D context, c the colours.
export const font = '"PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "WenQuanYi Micro Hei", sans-serif';

export function write(g, text, x, y, { size = 12, weight = 400, colour, align = "left", room = 0 } = {}) {
  g.font = `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", ${font}`;
  g.fillStyle = colour;
  g.textAlign = align;
  g.textBaseline = "middle";
  if (room > 0 && g.measureText(text).width > room) {
    let cut = text;
    while (cut.length > 1 && g.measureText(cut + "…").width > room) cut = cut.slice(0, -1);
    text = cut + "…";
  }
  g.fillText(text, x, y);
  return g.measureText(text).width;
}

export function box(g, r, { fill, stroke, width = 1, round = 8, dash } = {}) {
  g.beginPath();
  g.roundRect(r.x, r.y, r.w, r.h, round);
  if (fill) { g.fillStyle = fill; g.fill(); }
  if (!stroke) return;
  g.strokeStyle = stroke;
  g.lineWidth = width;
  g.setLineDash(dash ?? []);
  g.stroke();
  g.setLineDash([]);
}

export function line(g, points, { stroke, width = 1.5, dash, shift = 0, arrow = false } = {}) {
  g.beginPath();
  points.forEach(([x, y], i) => i ? g.lineTo(x, y) : g.moveTo(x, y));
  g.strokeStyle = stroke;
  g.lineWidth = width;
  g.lineCap = dash ? "butt" : "round";
  g.lineJoin = "round";
  g.setLineDash(dash ?? []);
  g.lineDashOffset = shift;
  g.stroke();
  g.setLineDash([]);
  if (!arrow) return;
  const [[ax, ay], [bx, by]] = points.slice(-2);
  const a = Math.atan2(by - ay, bx - ax), s = 4 + width;
  g.beginPath();
  g.moveTo(bx, by);
  g.lineTo(bx - s * Math.cos(a - .5), by - s * Math.sin(a - .5));
  g.lineTo(bx - s * Math.cos(a + .5), by - s * Math.sin(a + .5));
  g.closePath();
  g.fillStyle = stroke;
  g.fill();
}

export function disc(g, x, y, r, { fill, stroke, width = 1.5, dash } = {}) {
  g.beginPath();
  g.arc(x, y, r, 0, 7);
  if (fill) { g.fillStyle = fill; g.fill(); }
  if (!stroke) return;
  g.strokeStyle = stroke;
  g.lineWidth = width;
  g.setLineDash(dash ?? []);
  g.stroke();
  g.setLineDash([]);
}

export function cross(g, x, y, r, stroke, width = 2) {
  line(g, [[x - r, y - r], [x + r, y + r]], { stroke, width });
  line(g, [[x + r, y - r], [x - r, y + r]], { stroke, width });
}

// hatch fills a box with slanted lines: what is not known.
export function hatch(g, r, stroke, round = 4) {
  g.save();
  g.beginPath();
  g.roundRect(r.x, r.y, r.w, r.h, round);
  g.clip();
  for (let x = r.x - r.h; x < r.x + r.w; x += 6) line(g, [[x, r.y + r.h], [x + r.h, r.y]], { stroke, width: 1 });
  g.restore();
}

// dot is a message.
export function dot(g, x, y, r, c, { lost, twice, unknown, done, refused } = {}) {
  if (twice) disc(g, x, y, r + 3.5, { stroke: c.twice, width: 2 });
  if (lost) {
    disc(g, x, y, r, { fill: c.lost });
    cross(g, x, y, r * .45, c.card, 1.6);
  } else if (unknown) {
    const R = r + 1.5;
    disc(g, x, y, R, { fill: c.card });
    g.globalAlpha = .28;
    hatch(g, { x: x - R, y: y - R, w: 2 * R, h: 2 * R }, c.doubt, R);
    g.globalAlpha = 1;
    disc(g, x, y, R, { stroke: c.doubt, width: 1.6, dash: [3, 1.6] });
    write(g, "?", x, y + .8, { size: r * 1.75, weight: 800, colour: c.doubt, align: "center" });
  } else if (refused) {
    disc(g, x, y, r, { fill: c.card, stroke: c.muted });
    line(g, [[x - r * .5, y], [x + r * .5, y]], { stroke: c.muted });
  } else {
    disc(g, x, y, r, { fill: done ? c.done : c.e2e });
    disc(g, x - r * .3, y - r * .35, r * .28, { fill: "rgb(255 255 255 / .45)" });
  }
}

export function person(g, x, y, s, fill) {
  disc(g, x, y - s * .55, s * .34, { fill });
  g.beginPath();
  g.arc(x, y + s * .55, s * .62, Math.PI, 0);
  g.closePath();
  g.fillStyle = fill;
  g.fill();
}

export function cylinder(g, r, { fill, stroke, dash }) {
  const e = Math.min(10, r.h * .12);
  g.beginPath();
  g.moveTo(r.x, r.y + e);
  g.lineTo(r.x, r.y + r.h - e);
  g.ellipse(r.x + r.w / 2, r.y + r.h - e, r.w / 2, e, 0, Math.PI, 0, true);
  g.lineTo(r.x + r.w, r.y + e);
  g.ellipse(r.x + r.w / 2, r.y + e, r.w / 2, e, 0, 0, Math.PI, true);
  g.closePath();
  g.fillStyle = fill;
  g.fill();
  g.strokeStyle = stroke;
  g.lineWidth = 1.5;
  g.setLineDash(dash ?? []);
  g.stroke();
  g.beginPath();
  g.ellipse(r.x + r.w / 2, r.y + e, r.w / 2, e, 0, 0, Math.PI);
  g.stroke();
  g.setLineDash([]);
}

// badge is a short word on a ground of its own; it returns its width.
export function badge(g, text, x, y, { fill, colour, size = 11, align = "left" }) {
  g.font = `600 ${size}px system-ui, ${font}`;
  const w = g.measureText(text).width + 10, left = align === "right" ? x - w : align === "center" ? x - w / 2 : x;
  box(g, { x: left, y: y - size * .78, w, h: size * 1.56 }, { fill, round: size * .78 });
  write(g, text, left + 5, y + .5, { size, weight: 600, colour });
  return w;
}
