"use strict";
// The operator's console. What the server does not know is null, and shown as
// unknown; what it said last stays on the page, and is marked as old.

const $ = id => document.getElementById(id);
for (const e of document.querySelectorAll("[data-t]")) en[e.dataset.t] ??= e.textContent;
let lang = localStorage.getItem("tongue") || (navigator.language.startsWith("zh") ? "zh" : "en");
let bearer = sessionStorage.getItem("operator");
let state = null, drift = null, letters = null, since = null; // since: when the server stopped answering
let offset = 0, letterLimit = 50, trail = [], timer = 0, turn = 0;

const t = (key, ...values) => (lang === "zh" ? zh : en)[key].replace(/\{(\d)\}/g, (_, i) => values[i]);
const known = (key, ...values) => en[key] ? t(key, ...values) : null;
// said is what the server says of a code: in the reader's words where there are
// some, otherwise in its own, which are English.
function said(tag, code, facts, english) {
  const words = lang === "zh" && zhSaid[code];
  const e = el(tag, "", words ? words.replace(/\{(\d)\}/g, (_, i) => i === "0" && ofStatus.has(code) ? t("o_" + facts[0]) : facts[i]) : english);
  if (!words) e.lang = "en";
  return e;
}
const locale = () => lang === "zh" ? "zh-CN" : "en-GB";
const num = n => n.toLocaleString(locale());
const money = cents => (cents / 100).toLocaleString(locale(), { minimumFractionDigits: 2 });
const when = at => new Date(at).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "medium" });
const now = () => Date.now() + offset;

function span(ms) {
  const s = ms / 1000;
  if (s < 60) return t("sec", s < 10 && s % 1 ? s.toFixed(1) : Math.floor(s));
  if (s < 3600) return t("minSec", Math.floor(s / 60), Math.floor(s % 60));
  if (s < 86400) return t("hourMin", Math.floor(s / 3600), Math.floor(s % 3600 / 60));
  return t("dayHour", Math.floor(s / 86400), Math.floor(s % 86400 / 3600));
}

// set changes what is on the page only where it changed: a screen reader and a
// selection notice every change.
function set(e, text) {
  const missing = text === null || text === undefined;
  e.classList.toggle("unknown", missing);
  const to = missing ? t("unknown") : String(text);
  if (e.textContent !== to) e.textContent = to;
}

function chip(e, kind, text) {
  e.className = "chip " + kind;
  if (e.textContent !== text) e.textContent = text;
}

function el(tag, cls, ...children) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
}

function button(text, label, cls, press) {
  const b = el("button", "small " + cls, text);
  b.type = "button";
  b.setAttribute("aria-label", label);
  b.addEventListener("click", async () => { b.disabled = true; try { await press(); } finally { b.disabled = false; } });
  return b;
}

function notice(text, bad) {
  const n = $("notice");
  n.hidden = !text;
  n.classList.toggle("bad", !!bad);
  n.textContent = text;
}

// call throws an Error whose message is for the operator; code and status are
// the server's.
async function call(method, path, body, as = bearer) {
  let r;
  const headers = { Authorization: "Bearer " + as };
  if (body) headers["Content-Type"] = "application/json";
  try {
    r = await fetch(path, { method, headers, cache: "no-store", body: body && JSON.stringify(body), signal: AbortSignal.timeout(10000) });
  } catch { throw Object.assign(new Error(t("offline")), { status: 0 }); }
  const data = await r.json().catch(() => ({}));
  if (r.ok) return data;
  const { code, message } = data.error || { code: "other", message: String(r.status) };
  throw Object.assign(new Error(known("e_" + code, message) || t("e_other", message)), { status: r.status, code });
}

// act does something for the operator and says how it went.
async function act(what, said) {
  try {
    const got = await what();
    notice(said(got), false);
    refresh(true);
    return true;
  } catch (e) {
    if (e.status === 401) return signOut(t("signedOut"));
    notice(e.message, true);
  }
}

function ask(text, yes) {
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes;
  const d = $("ask");
  d.returnValue = "no";
  d.showModal();
  return new Promise(done => d.addEventListener("close", () => done(d.returnValue === "yes"), { once: true }));
}

// ---- signing in

function signOut(why) {
  bearer = state = drift = letters = since = null;
  trail = [];
  sessionStorage.removeItem("operator");
  document.body.className = "out";
  chip($("live"), "", "");
  $("signin-error").textContent = why || "";
  notice("");
  $("secret").focus();
}

function signInWith() {
  const account = $("signin-form").how.value === "account";
  $("name-field").hidden = !account;
  $("secret-hint").hidden = account;
  $("secret-label").dataset.t = account ? "password" : "operatorToken";
  $("secret-label").textContent = t($("secret-label").dataset.t);
}

$("signin-form").addEventListener("change", signInWith);
$("signin-form").addEventListener("submit", async e => {
  e.preventDefault();
  const error = $("signin-error"), secret = $("secret").value.trim(), account = $("signin-form").how.value === "account";
  error.textContent = "";
  if (!secret) { error.textContent = t("needSecret"); $("secret").focus(); return; }
  try {
    let as = secret;
    if (account) {
      const { login } = await call("GET", "/api/session", null, "").catch(() => ({}));
      if (login === "open") throw new Error(t("noAccounts"));
      const a = await call("POST", "/api/login", { user: $("name").value.trim(), password: $("secret").value }, "");
      if (a.role !== "operator") throw new Error(t("buyerAccount"));
      as = a.token;
    }
    show(await call("GET", "/api/operator/state", null, as));
    bearer = as;
    sessionStorage.setItem("operator", as);
    $("secret").value = "";
    document.body.className = "in";
    $("main").focus();
    refresh(true);
  } catch (err) {
    error.textContent = !account && (err.status === 401 || err.status === 403) ? t("notOperator") : err.message;
    $("secret").focus();
  }
});
$("signout").addEventListener("click", () => signOut(""));

// ---- looking

async function refresh(all) {
  clearTimeout(timer);
  const mine = ++turn;
  if (!bearer) return;
  try {
    const before = JSON.stringify(state && state.letters);
    const got = await call("GET", "/api/operator/state");
    if (mine !== turn || !bearer) return;
    since = null;
    show(got);
    if (all || turn % 3 === 0 || before !== JSON.stringify(got.letters)) await Promise.all([lookForLetters(), lookForDrift()]);
  } catch (e) {
    if (mine !== turn || !bearer) return;
    if (e.status === 401 || e.status === 403) return signOut(t("signedOut"));
    since ??= Date.now();
    showLive();
  }
  if (mine === turn) timer = setTimeout(refresh, document.hidden ? 10000 : 1000);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(true); });

function showLive() {
  if (since) chip($("live"), "bad", t("noAnswer", new Date(since).toLocaleTimeString(locale())));
  else chip($("live"), "good", t("live"));
  for (const e of document.querySelectorAll("main > .in-only")) e.classList.toggle("stale", !!since);
}

// ---- the overview

const steps = ["clicked", "admitted", "queued", "committed", "paid"];

function makeFunnel(list) {
  return steps.map(key => {
    const s = { key, name: el("span", "name"), n: el("span", "n"), fill: el("div", "fill"), rate: el("span", "rate") };
    const track = el("div", "track", s.fill);
    track.setAttribute("aria-hidden", "true");
    list.append(el("li", "", s.name, s.n, track, s.rate));
    return s;
  });
}

function showFunnel(rows, f, rates) {
  const most = Math.max(1, ...steps.map(k => f[k] ?? 0));
  rows.forEach((s, i) => {
    const n = f[s.key], before = i ? f[steps[i - 1]] : null;
    set(s.name, t(s.key));
    set(s.n, n === null ? null : num(n));
    s.fill.style.width = 100 * (n ?? 0) / most + "%";
    const more = [];
    if (before > 0 && n !== null) more.push(t("share", (n / before).toLocaleString(locale(), { style: "percent", maximumFractionDigits: 1 }), t(steps[i - 1]).toLowerCase()));
    if (rates && rates[s.key] > 0) more.push(t("perSecond", num(Math.round(rates[s.key]))));
    set(s.rate, more.join(" · "));
  });
}

// ratesOf tells how fast the numbers grow, over the last five seconds.
function ratesOf(s) {
  const at = Date.parse(s.at);
  if (!trail.length || trail[trail.length - 1].at < at) trail.push({ at, total: s.total });
  while (trail.length > 1 && at - trail[0].at > 5500) trail.shift();
  const first = trail[0], rates = {};
  for (const k of steps) {
    if (at > first.at && s.total[k] !== null && first.total[k] !== null) rates[k] = 1000 * (s.total[k] - first.total[k]) / (at - first.at);
  }
  return rates;
}

function showQueue(q) {
  const box = $("queue");
  set($("queue-name"), q.name);
  const words = !q.used ? t("noQueue") : !q.tells ? t("doesNotTell") : !q.depth ? t("queueSilent") : null;
  if (words) {
    const e = el("span", "unknown", words);
    if (box.textContent !== words) box.replaceChildren(e);
    return;
  }
  if (!box.querySelector(".depth")) box.replaceChildren(el("div", "depth", ...[0, 1, 2].map(() => el("span", "", el("b"), el("small")))));
  [["ready", q.depth.ready], ["delivered", q.depth.inFlight], ["dead", q.depth.dead]].forEach(([key, n], i) => {
    const [b, small] = box.querySelectorAll(".depth > span")[i].children;
    set(b, n === null ? t("notTold") : num(n));
    b.classList.toggle("unknown", n === null);
    set(small, t(key));
  });
}

const total = makeFunnel($("total"));

function show(s) {
  state = s;
  offset = Date.parse(s.at) - Date.now();
  showLive();
  const parts = s.failed.map(p => t("p_" + p)).join(", ");
  const warned = $("notice").dataset.parts || "";
  if (parts !== warned) {
    notice(parts && t("partsFailed", parts), true);
    $("notice").dataset.parts = parts;
  }
  showFunnel(total, s.total, ratesOf(s));
  const r = s.total.refused;
  set($("refused"), r ? t("refused", num(r.soldOut), num(r.alreadyBought), num(r.busy)) : t("refusedUnknown"));
  showQueue(s.queue);
  set($("inflight"), s.inFlight === null ? null : num(s.inFlight));
  set($("oldest"), s.inFlight === null ? null : s.inFlight === 0 ? t("nobodyWaits") : !s.oldest ? null : s.oldest.atLeast ? t("atLeast", span(s.oldest.ms)) : span(s.oldest.ms));
  set($("open-letters"), s.letters ? num(s.letters.open) : null);
  showVouchers(s.vouchers);
  $("more").hidden = !s.more;
  showInstances(s);
}

// ---- vouchers

const cards = new Map();

function makeVoucher(v) {
  const c = { root: el("article", "card voucher"), title: el("h3"), chip: el("span", "chip"), facts: el("p", "facts"), list: el("ol", "funnel"),
    db: el("span"), gate: el("span"), orders: el("span"), verdict: el("span", "chip"), wrong: el("ul", "wrong"), heads: [el("span"), el("span"), el("span")] };
  c.title.id = "v" + v.id;
  c.root.setAttribute("aria-labelledby", c.title.id);
  c.rows = makeFunnel(c.list);
  c.open = button("", "", "primary", () => act(() => call("POST", "/api/vouchers/" + v.id + "/open"), () => t("opened", c.title.textContent)));
  c.root.append(el("div", "head", el("div", "title", c.title, c.chip), c.open), c.facts, c.list,
    el("div", "ledger", el("p", "verdict", c.verdict), ...[c.db, c.gate, c.orders].map((e, i) => el("p", "line", c.heads[i], e)), c.wrong));
  cards.set(v.id, c);
  return c;
}

function stageOf(v) {
  const at = now();
  if (at >= Date.parse(v.endTime)) return ["", "sEnded"];
  if (at < Date.parse(v.beginTime)) return ["", "sUpcoming"];
  if (v.bySignal && !v.opened) return ["warn", "sWaits"];
  if ((v.gate && v.gate.loaded ? v.gate.left : v.left) === 0) return ["", "sSoldOut"];
  return ["good", "sOpen"];
}

function showVouchers(vs) {
  const empty = $("no-vouchers");
  empty.hidden = !!(vs && vs.length) || (!vs && cards.size > 0);
  set(empty, vs ? t("noVouchers") : null);
  $("voucher-list").classList.toggle("stale", !vs);
  if (!vs) return; // what was known stays, as old
  const seen = new Set();
  vs.forEach((v, i) => {
    const c = cards.get(v.id) || makeVoucher(v);
    seen.add(v.id);
    if ($("voucher-list").children[i] !== c.root) $("voucher-list").insertBefore(c.root, $("voucher-list").children[i] || null);
    showVoucher(c, v);
  });
  for (const [id, c] of cards) if (!seen.has(id)) { c.root.remove(); cards.delete(id); }
}

function showVoucher(c, v) {
  set(c.title, v.title);
  const [kind, stage] = stageOf(v);
  chip(c.chip, kind, t(stage));
  set(c.open, t("openNow"));
  c.open.setAttribute("aria-label", t("openNow") + ": " + v.title);
  c.open.hidden = stage !== "sWaits";
  const facts = [t("window", when(v.beginTime), when(v.endTime)), t("price", money(v.payValue), money(v.actualValue)), t("each", v.perUser)];
  if (v.payWithinSeconds) facts.push(t("payWithin", num(v.payWithinSeconds)));
  if (v.maxInFlight) facts.push(t("cap", num(v.maxInFlight)));
  if (v.openAt && !v.opened) facts.push(t("due", when(v.openAt)));
  facts.push(t("voucherNo", v.id));
  set(c.facts, facts.join(" · "));
  showFunnel(c.rows, v.funnel);
  const seen = v.gate || state.stockless; // half of what balances is unknown without
  chip(c.verdict, !v.balanced ? "bad" : seen ? "good" : "", t(!v.balanced ? "unbalanced" : seen ? "balanced" : "halfSeen"));
  ["database", "gate", "orders"].forEach((k, i) => set(c.heads[i], t(k)));
  set(c.db, t("dbLine", num(v.stock), num(v.left), num(v.held), "", v.stock === v.left + v.held ? "=" : "≠"));
  const g = v.gate;
  set(c.gate, !g ? t(state.stockless ? "gateStockless" : "gateUnseen") : !g.loaded ? t("gateNotLoaded") : t("gateLine", num(g.units), num(g.left), num(g.buyers), num(g.inFlight), g.units === g.left + g.buyers ? "=" : "≠"));
  c.gate.classList.toggle("unknown", !g);
  set(c.orders, t("ordersLine", num(v.confirmed), num(v.paid), num(v.failed), num(v.cancelled), num(v.refunded)) + (v.giveBack ? " · " + t("giveBack", num(v.giveBack)) : ""));
  const is = lang + JSON.stringify(v.faults);
  if (c.wrong.dataset.is !== is) {
    c.wrong.dataset.is = is;
    c.wrong.replaceChildren(...v.faults.map(f => said("li", f.kind, f.facts, f.detail)));
  }
}

// ---- a new voucher

const whole = (min, max) => v => /^\d{1,12}$/.test(v) && +v >= min && +v <= max ? null : t("vRange", min, max);
const cents = v => /^\d{1,10}([.,]\d{1,2})?$/.test(v) ? Math.round(parseFloat(v.replace(",", ".")) * 100) : NaN;
const amount = v => cents(v) <= 1e11 ? null : t("vMoney");
const moment = v => v && !isNaN(new Date(v)) ? null : t("vTime");
const field = name => $("f-" + name).value.trim();
const bySignal = () => $("create-form").start.value === "signal";
const checks = {
  title: v => v && [...v].length <= 200 ? null : t("vTitle"),
  stock: whole(1, 10000000), perUser: whole(1, 10), payValue: amount, actualValue: amount, beginTime: moment,
  endTime: v => moment(v) || (new Date(v) > new Date(field("beginTime")) ? null : t("vAfter")),
  openFrom: v => !bySignal() || !v ? (bySignal() && field("openTo") ? t("vFrom") : null)
    : new Date(v) >= new Date(field("beginTime")) && new Date(v) < new Date(field("endTime")) ? null : t("vWithin"),
  openTo: v => !bySignal() || !v ? null : new Date(v) < new Date(field("openFrom")) ? t("vOrder") : new Date(v) < new Date(field("endTime")) ? null : t("vWithin"),
  payWithinSeconds: whole(0, 2592000), maxInFlight: whole(0, 10000000),
};

// check marks a field, and says beneath it what is wrong.
function check(name) {
  const input = $("f-" + name), box = input.closest(".field"), wrong = checks[name](field(name));
  let said = box.querySelector(".error");
  if (!said) {
    said = el("p", "error");
    said.id = "e-" + name;
    box.append(said);
  }
  said.textContent = wrong || "";
  if (wrong) {
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", said.id);
  } else {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  return !wrong;
}

const local = at => new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
const names = Object.keys(checks);
for (const name of names) $("f-" + name).addEventListener("blur", () => { if ($("f-" + name).hasAttribute("aria-invalid")) check(name); });
$("create-form").addEventListener("change", () => { $("signal-fields").hidden = !bySignal(); });
$("create-cancel").addEventListener("click", () => $("create").close());
$("new").addEventListener("click", () => {
  const at = Math.floor(now() / 1000) * 1000;
  if (!field("beginTime") || new Date(field("endTime")) <= at) {
    $("f-beginTime").value = local(at);
    $("f-endTime").value = local(at + 3600000);
  }
  $("create-error").textContent = "";
  $("create").showModal();
  $("f-title").focus();
});

$("create-form").addEventListener("submit", async e => {
  e.preventDefault();
  const wrong = names.filter(n => !check(n)), error = $("create-error");
  error.textContent = wrong.length ? t("fix") : "";
  if (wrong.length) { $("f-" + wrong[0]).focus(); return; }
  const at = name => new Date(field(name)).toISOString();
  const offer = { title: field("title"), stock: +field("stock"), perUser: +field("perUser"), payValue: cents(field("payValue")), actualValue: cents(field("actualValue")),
    beginTime: at("beginTime"), endTime: at("endTime"), payWithinSeconds: +field("payWithinSeconds"), maxInFlight: +field("maxInFlight") };
  if (bySignal()) {
    offer.start = "signal";
    if (field("openFrom")) offer.openFrom = at("openFrom");
    if (field("openTo")) offer.openTo = at("openTo");
  }
  const send = e.submitter;
  if (send) send.disabled = true;
  try {
    await call("POST", "/api/vouchers", offer);
    $("create").close();
    $("f-title").value = "";
    notice(t("created", offer.title), false);
    refresh(true);
  } catch (err) {
    if (err.status === 401) { $("create").close(); signOut(t("signedOut")); }
    error.textContent = err.message;
  } finally { if (send) send.disabled = false; }
});

// ---- dead letters

async function lookForLetters() {
  const got = await call("GET", "/api/dead-letters?state=" + $("letter-state").value + "&limit=" + letterLimit);
  if (JSON.stringify(got) === JSON.stringify(letters)) return;
  letters = got;
  showLetters();
}

function showLetters() {
  if (!letters) return;
  const held = document.activeElement && document.activeElement.dataset.act;
  const open = new Set([...document.querySelectorAll("#letter-list details[open]")].map(d => d.dataset.of));
  $("letter-list").replaceChildren(...letters.letters.map(l => letterRow(l, open.has(l.id))));
  $("no-letters").hidden = letters.letters.length > 0;
  set($("no-letters"), t("noLetters"));
  $("more-letters").hidden = !letters.next || letterLimit >= 200;
  if (held) {
    const again = [...document.querySelectorAll("[data-act]")].find(b => b.dataset.act === held);
    (again || $("letter-state")).focus();
  }
}

function letterRow(l, opened) {
  const id = encodeURIComponent(l.id);
  const state = el("span");
  chip(state, l.state === "open" ? "warn" : "", t("dl_" + l.state));
  const reason = el("p", "", l.reason); // whatever an error says
  reason.lang = "en";
  const facts = [t("givenUp", when(l.at), l.times), l.order ? t("orderIs", l.order.orderId, t("o_" + l.order.status)) : t("orderNone")];
  if (l.doneBy) facts.push(t("doneBy", l.doneBy, when(l.doneAt)));
  const body = el("details", "", el("summary", "", t("body")), el("pre", "", l.body));
  body.dataset.of = l.id;
  body.open = opened;
  const actions = el("div", "actions");
  if (l.state === "open") {
    const replay = button(t("replay"), t("replayOf", l.id), "quiet",
      () => act(() => call("POST", "/api/dead-letters/" + id + "/replay"), got => t(got.state === "replaying" ? "replayPending" : "replayDone", l.id)));
    const discard = button(t("discard"), t("discardOf", l.id), "quiet", async () => {
      if (await ask(t("askDiscard", l.id), t("discard"))) await act(() => call("POST", "/api/dead-letters/" + id + "/discard"), () => t("discardDone", l.id));
    });
    replay.dataset.act = "replay " + l.id;
    discard.dataset.act = "discard " + l.id;
    replay.disabled = !!l.order;
    if (l.order) facts.push(t("decidedStays"));
    actions.append(replay, discard);
  }
  return el("li", "", el("div", "what", el("p", "title", el("code", "", l.id), state), el("p", "", t("l_" + l.code)), reason, el("p", "sub", facts.join(" · ")), body), actions);
}

$("letter-state").addEventListener("change", () => { letterLimit = 50; refresh(true); });
$("more-letters").addEventListener("click", () => { letterLimit = Math.min(200, letterLimit + 50); refresh(true); });

// ---- drift

async function lookForDrift() {
  let got;
  try {
    got = await call("GET", "/api/operator/drift");
  } catch (e) {
    if (e.status !== 404) throw e;
    got = { off: true };
  }
  if (JSON.stringify(got) === JSON.stringify(drift)) return;
  drift = got;
  showDrift();
}

const shownDrift = 30;

function driftRow(d) {
  const what = el("div", "what", el("p", "title", el("strong", "", known("d_" + d.kind) || d.kind), el("code", "", d.kind)));
  const detail = said("p", d.kind, d.facts, d.detail);
  const facts = [t("voucherNo", d.voucherId)];
  if (d.orderId) facts.push(t("orderNo", d.orderId));
  facts.push(t("since", when(d.since)));
  what.append(detail, el("p", "sub", facts.join(" · ")));
  if (d.done) {
    const [before, after] = t("done", "\n").split("\n");
    what.append(el("p", "sub", before, said("span", d.did, d.didFacts, d.done), after));
  }
  return el("li", "", what);
}

function showDrift() {
  if (!drift) return;
  const ds = drift.drift || [], looked = !drift.off && drift.at;
  set($("drift-hint"), drift.off ? t("driftOff") : !drift.at ? t("driftNever") : t("driftHint", num(drift.everySeconds), when(drift.at), num(drift.inFlight)) + (drift.failed ? " " + t("driftFailed") : ""));
  const rest = ds.length - shownDrift;
  $("drift-list").replaceChildren(...ds.slice(0, shownDrift).map(driftRow), ...(rest > 0 ? [el("li", "", el("p", "sub", t("moreDrift", num(rest))))] : []));
  $("no-drift").hidden = ds.length > 0;
  set($("no-drift"), looked ? t("noDrift") : t(drift.off ? "driftOff" : "driftUnknown"));
  const count = el("span");
  if (!looked) set($("drift-count"), drift.off ? t("off") : null);
  else {
    chip(count, ds.length ? "bad" : drift.failed ? "" : "good", drift.failed ? t("atLeast", num(ds.length)) : t("standing", num(ds.length)));
    $("drift-count").classList.remove("unknown");
    $("drift-count").replaceChildren(count);
  }
  const repairs = drift.repairs || [];
  $("repairs").hidden = !repairs.length;
  $("repair-list").replaceChildren(...repairs.toReversed().map(driftRow));
}

// ---- instances

const heads = ["instance", "health", "role", "started", "seen", "queue", "version"];
const healths = { ready: "good", not_ready: "bad", stopped: "", silent: "bad" };

function showInstances(s) {
  const is = s.instances;
  $("kill").hidden = !s.lab;
  $("no-instances").hidden = !!(is && is.length);
  set($("no-instances"), t(is ? "noInstances" : "instancesUnknown"));
  document.querySelector(".scroll").hidden = !(is && is.length);
  if (!is) return;
  const list = $("instance-list");
  while (list.rows.length > is.length) list.deleteRow(-1);
  is.forEach((i, at) => {
    if (!list.rows[at]) {
      const who = el("th", "", el("div"), el("span", "sub"));
      who.scope = "row";
      who.setAttribute("role", "rowheader");
      list.append(el("tr", "", who, el("td", "", el("span", "chip")), el("td"), el("td"), el("td"), el("td", "wrap", el("code")), el("td", "wrap")));
    }
    const c = list.rows[at].cells;
    list.rows[at].setAttribute("role", "row"); // however it is laid out
    heads.forEach((key, n) => {
      if (!n) return;
      c[n].setAttribute("role", "cell");
      c[n].dataset.head = t(key);
    });
    set(c[0].firstChild, i.name);
    set(c[0].lastChild, t("numbered", i.number) + (i.number === s.instance ? " · " + t("self") : ""));
    chip(c[1].firstChild, healths[i.health], t("h_" + i.health, i.failing.map(p => known("p_" + p.replace("admission", "gate")) || p).join(", ")));
    set(c[2], known("r_" + i.role) || i.role);
    set(c[3], span(1000 * i.upSeconds));
    set(c[4], i.silentSeconds < 3 ? t("now") : t("ago", span(1000 * i.silentSeconds)));
    set(c[5].firstChild, i.queue);
    set(c[6], i.version);
  });
}

$("kill").addEventListener("click", async () => {
  if (await ask(t("askKill"), t("kill"))) await act(() => call("POST", "/api/operator/kill"), got => t("killed", got.pid));
});

// ---- language

function translate() {
  document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
  document.title = t("title");
  for (const e of document.querySelectorAll("[data-t]")) e.textContent = t(e.dataset.t);
  for (const e of document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", t(e.dataset.label));
  $("lang").textContent = lang === "zh" ? "English" : "中文";
  $("lang").lang = lang === "zh" ? "en" : "zh";
  $("zone").textContent = t("zone", Intl.DateTimeFormat().resolvedOptions().timeZone);
  for (const name of names) if ($("f-" + name).hasAttribute("aria-invalid")) check(name);
  if (state) show(state);
  showLetters();
  showDrift();
}
$("lang").addEventListener("click", () => {
  lang = lang === "zh" ? "en" : "zh";
  localStorage.setItem("tongue", lang);
  translate();
});

translate();
if (bearer) {
  document.body.className = "in";
  refresh(true);
} else $("secret").focus();
