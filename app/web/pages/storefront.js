// The storefront: what is on sale, buying it, and what became of it.
import { call, leave, now, page, pause, Refusal, secret, session, setClock, stream } from "./storefront-net.js";
import { choose, clock, count, current, knows, moment, money, span, text } from "./storefront-text.js";
import { askRiddle, openDoor, sure } from "./storefront-ask.js";
import { remembered, remember, forgetOrder } from "./storefront-memory.js";

const $ = id => document.getElementById(id);
const cards = new Map();  // voucher id -> card
const orders = new Map(); // order id -> row of "my orders"
const listEvery = 5000;

// ----- what does not change with the sale

function speak() {
  document.documentElement.lang = current() === "zh" ? "zh-CN" : "en";
  document.title = text("brand");
  for (const e of document.querySelectorAll("[data-text]")) e.textContent = text(e.dataset.text);
  for (const e of document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", text(e.dataset.label));
  for (const b of document.querySelectorAll("[data-tongue]")) b.setAttribute("aria-pressed", String(b.dataset.tongue === current()));
  for (const c of cards.values()) { show(c); say(c); }
  for (const o of orders.values()) showOrder(o);
  trouble();
}

for (const b of document.querySelectorAll("[data-tongue]")) b.addEventListener("click", () => { choose(b.dataset.tongue); speak(); tick(); });

let away = false; // the shop did not answer last time

function trouble() {
  const offline = navigator.onLine === false;
  const says = offline ? text("offline") : away ? text("away") : "";
  if ($("offline").textContent !== says) $("offline").textContent = says;
  $("offline").hidden = !says;
}
addEventListener("online", () => { trouble(); refresh(); watch(); });
addEventListener("offline", trouble);

function showUser() {
  $("who").textContent = session.user || "";
  $("enter").hidden = Boolean(session.user);
  $("leave").hidden = !session.user;
  $("mine").hidden = !session.user;
  for (const c of cards.values()) show(c);
}
session.ended = () => { clearOrders(); showUser(); };

$("enter").addEventListener("click", async () => { if (await openDoor()) entered(); });
$("leave").addEventListener("click", () => {
  leave();
  clearOrders();
  for (const c of cards.values()) { c.follow?.abort(); c.busy = false; c.said = null; say(c); }
  showUser();
  $("enter").focus();
});

function entered() {
  clearOrders();
  showUser();
  loadOrders();
}

// ----- the vouchers

function element(tag, cls, into, more = {}) {
  const e = Object.assign(document.createElement(tag), more);
  if (cls) e.className = cls;
  into?.append(e);
  return e;
}

function makeCard(v) {
  const li = element("li", "card", $("vouchers")), c = { li, v, said: null, busy: false, until: 0 };
  li.id = "v" + v.id;
  const head = element("div", "card-head", li);
  c.badge = element("span", "badge", head);
  c.off = element("span", "off", head);
  c.title = element("h2", "", li, { id: "t" + v.id });
  const prices = element("p", "prices", li);
  c.price = element("strong", "price", prices);
  c.old = element("s", "old", prices);
  c.stock = element("p", "stock", li);
  c.bar = element("progress", "bar", li);
  c.when = element("p", "when", li);
  c.button = element("button", "main buy", li, { type: "button" });
  c.answer = element("p", "answer", li);
  c.answer.setAttribute("role", "status");
  li.setAttribute("aria-labelledby", c.title.id);
  c.button.addEventListener("click", () => { if (c.button.getAttribute("aria-disabled") !== "true") buy(c); });
  cards.set(v.id, c);
  return c;
}

const set = (e, s) => { if (e.textContent !== s) e.textContent = s; };

// phase is where a sale stands by the shop's clock, and what it waits for.
function phase(v, t = now()) {
  if (t >= Date.parse(v.endTime)) return "over";
  const opens = v.start === "signal" ? (v.openedAt ? Date.parse(v.openedAt) : Infinity) : Date.parse(v.beginTime);
  if (t < opens) return "soon";
  return v.left <= 0 ? "sold" : "live";
}

function whenText(v, p) {
  switch (p) {
    case "over": return text("ended");
    case "soon":
      if (now() < Date.parse(v.beginTime)) {
        return v.start === "signal" ? text("signalAfter", { time: moment(v.beginTime) }) : text("startsIn", { time: span(Date.parse(v.beginTime) - now()) });
      }
      return text("opensSoon");
    default: return text("endsIn", { time: span(Date.parse(v.endTime) - now()) });
  }
}

function show(c) {
  const v = c.v, p = phase(v), price = money(v.payValue);
  c.li.dataset.phase = p;
  set(c.title, v.title);
  set(c.price, price);
  const saves = v.actualValue > v.payValue;
  set(c.old, saves ? money(v.actualValue) : "");
  set(c.off, saves ? text("off", { percent: Math.floor(100 * (1 - v.payValue / v.actualValue)) }) : "");
  c.off.hidden = !saves;
  set(c.badge, { over: text("overShort"), soon: text("soonShort"), sold: text("soldOut"), live: text("liveShort") }[p]);
  let stock = text("left", { left: count(Math.max(0, v.left)), stock: count(v.stock) });
  if (v.perUser > 1) stock += " · " + text("perUser", { n: v.perUser });
  set(c.stock, stock);
  c.bar.max = v.stock;
  c.bar.value = Math.max(0, v.left);
  c.bar.setAttribute("aria-label", text("leftLabel", { title: v.title }));
  set(c.when, whenText(v, p));
  const wait = Math.ceil((c.until - performance.now()) / 1000);
  const all = held(v) >= Math.max(1, v.perUser);
  let label = text("buy", { price });
  if (c.busy) label = text(c.said?.key === "buying" ? "buying" : "status_queued");
  else if (p === "over") label = text("ended");
  else if (p === "soon") label = text("notOpen");
  else if (all) label = text("yours");
  else if (p === "sold") label = text("soldOut");
  else if (wait > 0) label = text("wait", { n: wait });
  else if (!session.user) label = text("logInToBuy");
  set(c.button, label);
  // Not disabled: a button that is loses the focus of those who wait at it.
  const off = c.busy || p !== "live" || all || wait > 0;
  c.button.setAttribute("aria-disabled", String(off));
  c.button.setAttribute("aria-label", off ? `${label}: ${v.title}` : session.user ? text("buyTitle", { title: v.title, price }) : `${label}: ${v.title}`);
}

// held counts what the buyer has of a voucher, or may get.
function held(v) {
  let n = 0;
  for (const r of orders.values()) if (r.o.voucherId === v.id && ["queued", "confirmed", "paid"].includes(r.o.status)) n++;
  return n;
}

// tell sets what the card answers; a key, so that it can be said in another
// language as well.
function tell(c, kind, key, values = {}) {
  c.said = { kind, key, values };
  say(c);
}

function say(c) {
  c.answer.dataset.kind = c.said?.kind || "";
  const v = c.said?.values || {};
  const more = v.payBy ? " " + text("payBefore", { time: span(Date.parse(v.payBy) - now()) }) : "";
  set(c.answer, c.said ? text(c.said.key, { ...v, why: v.reason ? why(v.reason) : "" }) + (c.said.key === "confirmed" && v.payBy ? more : "") : "");
}

const why = reason => knows("why_" + reason) ? text("why_" + reason) : reason.replaceAll("_", " ");

// offers are all that is not over, and what of the rest is on the same pages.
async function offers() {
  const vs = [];
  for (let path = "/api/vouchers"; path && vs.length < 1000; ) {
    const { list, next } = await page(path);
    vs.push(...list);
    path = list.length && Date.parse(list.at(-1).endTime) > now() ? next : "";
  }
  return vs;
}

async function refresh() {
  try {
    const vs = await offers();
    away = false;
    const known = cards.size;
    for (const v of vs) {
      const c = cards.get(v.id) || makeCard(v);
      // The streams are ahead of the list.
      if (c.v !== v) {
        if (c.live) v.left = c.v.left;
        v.openedAt = v.openedAt || c.v.openedAt;
      }
      c.v = v;
      show(c);
    }
    sortCards();
    $("empty").hidden = vs.length > 0;
    $("vouchers").setAttribute("aria-busy", "false");
    if (cards.size !== known) watch();
  } catch (e) {
    away = !(e instanceof Refusal && e.status < 500);
  }
  trouble();
}

const rank = { live: 0, soon: 1, sold: 2, over: 3 };

function sortCards() {
  const order = [...cards.values()].sort((a, b) => rank[phase(a.v)] - rank[phase(b.v)] || Date.parse(a.v.beginTime) - Date.parse(b.v.beginTime) || (a.v.id < b.v.id ? -1 : 1));
  const list = $("vouchers");
  if (list.contains(document.activeElement)) return; // nothing moves under somebody's hands
  order.forEach((c, i) => { if (list.children[i] !== c.li) list.insertBefore(c.li, list.children[i] || null); });
}

let watching = null;

// watch has one stream about all that is not over, for as long as the page is
// seen: a browser has few connections to one server.
async function watch() {
  watching?.abort();
  const mine = watching = new AbortController();
  for (let tries = 0; !mine.signal.aborted;) {
    for (const c of cards.values()) c.live = false;
    let why = "";
    const ids = [...cards.values()].filter(c => phase(c.v) !== "over").slice(0, 50).map(c => c.v.id);
    if (document.hidden || ids.length === 0) return;
    try {
      why = await stream("/api/events?voucher=" + ids.join(","), mine.signal, (event, data) => {
        tries = 0;
        if (event === "voucher") seen(data);
      });
    } catch (e) { if (mine.signal.aborted) return; }
    tries++;
    // Where newer pages of the same buyer have the streams, or others need them more, the list has to do for a while.
    await pause(why === "replaced" || why === "crowded" ? 30_000 : Math.min(10_000, 250 * 2 ** tries) * (0.5 + Math.random()), mine.signal);
  }
}

function seen(s) {
  const c = cards.get(s.voucherId);
  if (!c) return;
  const before = phase(c.v);
  c.live = s.left !== null; // this number is ahead of the list's
  if (c.live) c.v.left = s.left;
  if (s.openedAt) c.v.openedAt = s.openedAt;
  show(c);
  const after = phase(c.v);
  if (before === after || c.busy || c.said?.kind === "good") return;
  if (before === "soon" && after === "live") tell(c, "news", "sayOpened", { title: c.v.title });
  if (before === "live" && after === "sold") tell(c, "bad", "sayNowSoldOut", { title: c.v.title });
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { watching?.abort(); return; }
  setClock();
  refresh();
  watch();
});

// ----- buying

async function pathToken(c) {
  const path = `/api/vouchers/${c.v.id}/path`;
  for (let body, tries = 0; ; tries++) {
    try {
      return (await call("POST", path, body)).token;
    } catch (e) {
      if (!["captcha_required", "captcha_wrong"].includes(e.code) || tries > 9) throw e;
      body = await askRiddle(c.v.id, e.code === "captcha_wrong");
      if (!body) return null;
    }
  }
}

async function buy(c) {
  if (!session.user) {
    if (!await openDoor(text("toBuy", { title: c.v.title }))) return;
    entered();
    c.button.focus();
  }
  c.busy = true;
  tell(c, "wait", "buying");
  show(c);
  try {
    const headers = {};
    if (session.door.purchaseToken) {
      const token = await pathToken(c);
      if (token === null) { tell(c, "bad", "sayClosed"); return; }
      headers["X-Purchase-Token"] = token;
    }
    // The same wish until it has an answer: after a lost one, a second unit of
    // several would be another order.
    if (c.v.perUser > 1) headers["Idempotency-Key"] = c.wish = c.wish || secret("");
    const { orderId } = await call("POST", `/api/vouchers/${c.v.id}/orders`, undefined, headers);
    c.wish = null;
    remember(session.user, { id: orderId, voucher: c.v.id, title: c.v.title, cents: c.v.payValue });
    await follow(c, orderId);
  } catch (e) {
    refused(c, e);
  } finally {
    c.busy = false;
    show(c);
  }
  refresh();
}

function refused(c, e) {
  if (!(e instanceof Refusal)) { tell(c, "bad", "sayOffline"); return; }
  if (e.code !== "busy" && e.code !== "rate_limited") c.wish = null;
  switch (e.code) {
    case "sold_out": c.v.left = 0; tell(c, "bad", "saySoldOut"); return;
    case "already_bought":
      tell(c, "news", "sayBought");
      if (e.location) bought(c, e.location.split("/").pop());
      return;
    case "not_started": tell(c, "bad", "sayNotStarted"); setClock(); return;
    case "ended": tell(c, "bad", "sayEnded"); return;
    case "busy": case "rate_limited": {
      const n = Math.max(1, e.after);
      c.until = performance.now() + 1000 * n;
      tell(c, "bad", e.code === "busy" ? "sayBusy" : "sayLimited", { n });
      return;
    }
    case "unauthorized": tell(c, "bad", "again"); return;
    default: tell(c, "bad", "said", { message: e.message });
  }
}

function bought(c, id) {
  remember(session.user, { id, voucher: c.v.id, title: c.v.title, cents: c.v.payValue });
  loadOrders();
}

// follow tells of an order until it is decided: by a stream, or by asking where
// there is none.
async function follow(c, id) {
  c.follow?.abort();
  const mine = c.follow = new AbortController();
  const user = session.user;
  let last = { orderId: id, status: "queued" };
  const on = o => {
    if (mine.signal.aborted) return;
    last = o;
    if (o.status === "queued") {
      if (o.ahead > 0) tell(c, "wait", "ahead", { n: count(o.ahead) });
      else tell(c, "wait", o.ahead === 0 ? "next" : "queued");
    }
    putOrder({ ...o, voucherId: c.v.id, title: c.v.title, cents: c.v.payValue });
  };
  on(last);
  for (let tries = 0; last.status === "queued" && !mine.signal.aborted && session.user === user; tries++) {
    try {
      let why = "";
      try {
        why = await stream(`/api/orders/${id}/events`, mine.signal, (event, data) => { if (event === "order") on(data); });
      } catch (e) {
        if (e instanceof Refusal && e.status !== 503) throw e;
      }
      // No stream, or it went to a newer page of the same buyer.
      if (last.status === "queued" && why !== "deadline" && !mine.signal.aborted) on(await call("GET", `/api/orders/${id}?wait=10s`));
      away = false;
      tries = 0;
    } catch (e) {
      if (mine.signal.aborted) return;
      if (e.status === 404) { tell(c, "bad", "sayGone"); dropOrder(id); return; }
      if (e.status === 401) { tell(c, "bad", "again"); return; }
      away = !(e instanceof Refusal);
      await pause(Math.min(10_000, 500 * 2 ** tries), mine.signal);
    }
    trouble();
  }
  if (mine.signal.aborted) return;
  if (last.status === "confirmed" || last.status === "paid") tell(c, "good", "confirmed", { id, payBy: last.payBy });
  else if (last.status === "failed") tell(c, "bad", "failed", { reason: last.reason });
}

// ----- my orders

const over = ["failed", "cancelled", "refunded"]; // nothing becomes of these any more

function clearOrders() {
  for (const r of orders.values()) r.li.remove();
  orders.clear();
  $("no-orders").hidden = false;
}

function dropOrder(id) {
  forgetOrder(session.user, id);
  orders.get(id)?.li.remove();
  orders.delete(id);
  $("no-orders").hidden = orders.size > 0;
}

function putOrder(o) {
  let r = orders.get(o.orderId);
  if (!r) {
    const li = element("li", "order");
    r = { li, o };
    const about = element("div", "order-about", li);
    r.title = element("h3", "", about);
    r.id = element("p", "order-id", about);
    r.status = element("span", "status", li);
    r.note = element("p", "order-note", li);
    r.note.setAttribute("role", "status");
    r.actions = element("div", "actions", li);
    r.pay = element("button", "main small", r.actions, { type: "button" });
    r.cancel = element("button", "quiet small", r.actions, { type: "button" });
    r.pay.addEventListener("click", () => pay(r));
    r.cancel.addEventListener("click", () => cancel(r));
    orders.set(o.orderId, r);
    // The newest first: ids grow with time, and are longer than numbers here count.
    const later = [...orders.values()].filter(x => x !== r && (x.o.orderId.length - o.orderId.length || (x.o.orderId < o.orderId ? -1 : 1)) < 0)
      .sort((a, b) => b.o.orderId.length - a.o.orderId.length || (a.o.orderId < b.o.orderId ? 1 : -1))[0];
    $("orders").insertBefore(li, later?.li || null);
  }
  r.o = { ...r.o, ...o, payBy: o.payBy };
  if (over.includes(o.status) && remembered(session.user, o.orderId)?.status !== o.status) remember(session.user, { id: o.orderId, status: o.status, reason: o.reason });
  $("no-orders").hidden = true;
  showOrder(r);
}

function showOrder(r) {
  const o = r.o, v = cards.get(o.voucherId)?.v, title = o.title || v?.title || text("unknownVoucher"), cents = o.cents ?? v?.payValue;
  set(r.title, title);
  set(r.id, text("order", { id: o.orderId }));
  set(r.status, text("status_" + o.status));
  r.status.dataset.status = o.status;
  const due = o.status === "confirmed" && cents !== undefined;
  r.actions.hidden = !due;
  if (due) {
    r.pay.hidden = session.door.payments !== "stand-in";
    set(r.pay, text("pay", { price: money(cents) }));
    r.pay.setAttribute("aria-label", text("payTitle", { price: money(cents), title, id: o.orderId }));
    set(r.cancel, text("cancel"));
    r.cancel.setAttribute("aria-label", text("cancelTitle", { title }));
  }
  r.pay.setAttribute("aria-disabled", String(Boolean(r.busy)));
  let note = "";
  if (r.said) note = text(r.said.key, { ...r.said.values, why: r.said.reason ? why(r.said.reason) : "" });
  else if (o.status === "confirmed") note = [o.payBy ? text("payIn", { time: span(Date.parse(o.payBy) - now()) }) : "", text(r.pay.hidden ? "payElsewhere" : "payStandIn")].filter(Boolean).join(" · ");
  else if (o.reason) note = why(o.reason);
  // A countdown is no news for those who listen.
  r.note.setAttribute("aria-live", r.said ? "polite" : "off");
  set(r.note, note);
}

async function act(r, path, body, done) {
  if (r.busy) return;
  r.busy = true;
  showOrder(r);
  try {
    putOrder({ ...r.o, ...await call("POST", `/api/orders/${r.o.orderId}/${path}`, body) });
    r.said = { key: done };
    const c = cards.get(r.o.voucherId);
    if (c?.said?.values.id === r.o.orderId) { c.said = null; say(c); }
  } catch (e) {
    if (e instanceof Refusal && knows("why_" + e.code)) r.said = { key: "failed", reason: e.code };
    else if (e instanceof Refusal) r.said = { key: "said", values: { message: e.message } };
    else r.said = { key: "sayOffline" };
    if (e instanceof Refusal) setTimeout(() => lookAt(r.o), 500);
  }
  r.busy = false;
  showOrder(r);
}

// Where a stand-in plays the payment provider it pays with one payment for each
// order, so that asking twice pays once.
const pay = r => act(r, "checkout", undefined, "paid");

async function cancel(r) {
  if (r.busy || !await sure(text("sureWhat", { title: r.title.textContent }))) return;
  await act(r, "cancel", undefined, "cancelled");
  (r.actions.hidden ? $("main") : r.cancel).focus();
  refresh();
}

async function lookAt(o) {
  try {
    putOrder({ ...o, ...await call("GET", "/api/orders/" + o.orderId) });
  } catch (e) {
    if (e.status === 404) dropOrder(o.orderId);
  }
}

async function loadOrders() {
  const user = session.user;
  if (!user) return;
  const asked = new Set();
  try {
    for (const o of (await call("GET", "/api/orders")).orders) {
      if (session.user !== user) return;
      asked.add(o.orderId);
      putOrder(o);
    }
  } catch { /* what is remembered here may still be had */ }
  // Those that are over, or not decided yet, only this browser remembers.
  for (const m of remembered(user)) {
    if (asked.has(m.id) || session.user !== user) continue;
    const o = { orderId: m.id, voucherId: m.voucher, title: m.title, cents: m.cents };
    if (over.includes(m.status)) putOrder({ ...o, status: m.status, reason: m.reason });
    else {
      await lookAt(o);
      await pause(200); // a buyer may ask so often, and no more
    }
  }
}

// ----- the clock

let expired = 0;

function tick() {
  set($("clock"), clock(now()));
  for (const c of cards.values()) {
    const waited = c.until > 0 && performance.now() >= c.until;
    if (waited) {
      c.until = 0;
      if (["sayBusy", "sayLimited"].includes(c.said?.key)) tell(c, "news", "sayAgain");
    }
    show(c);
  }
  for (const r of orders.values()) {
    showOrder(r);
    if (r.o.status === "confirmed" && r.o.payBy && now() > Date.parse(r.o.payBy) && performance.now() - expired > 2000) {
      expired = performance.now();
      lookAt(r.o);
    }
  }
}

async function begin() {
  speak();
  showUser();
  await Promise.all([setClock(), call("GET", "/api/session").then(d => {
    session.door = d;
    if (session.token && !d.user) { leave(); showUser(); }
  }, () => {})]);
  tick();
  await refresh();
  loadOrders();
  setInterval(tick, 250);
  setInterval(() => { if (!document.hidden) { refresh(); } }, listEvery);
  setInterval(setClock, 60_000);
}

begin();
