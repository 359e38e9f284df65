// How the page talks to the shop: requests, streams, and the shop's clock.

export class Refusal extends Error {
  constructor(status, code, message, headers) {
    super(message);
    Object.assign(this, { status, code, after: Number(headers.get("Retry-After")) || 0, location: headers.get("Location") || "" });
  }
}

export const session = {
  token: sessionStorage.getItem("token"),
  user: sessionStorage.getItem("user"),
  door: { login: "open", purchaseToken: false, captcha: "off", payments: "signed" },
  ended: () => {}, // called when the shop does not know the token any more
};

export function enter(token, user) {
  session.token = token;
  session.user = user;
  sessionStorage.setItem("token", token);
  sessionStorage.setItem("user", user);
}

export function leave() {
  session.token = session.user = null;
  sessionStorage.removeItem("token");
  sessionStorage.removeItem("user");
}

const withToken = headers => session.token ? { ...headers, Authorization: "Bearer " + session.token } : headers;

async function refusal(r) {
  const data = await r.json().catch(() => ({}));
  const e = data.error || {};
  if (r.status === 401 && session.token && e.code === "unauthorized") {
    leave();
    session.ended();
  }
  return new Refusal(r.status, e.code || "", e.message || String(r.status), r.headers);
}

// call is one request. It throws a Refusal where the shop said no, and something
// else where it said nothing.
export async function call(method, path, body, headers = {}) {
  if (body) headers = { ...headers, "Content-Type": "application/json" };
  const r = await fetch(path, { method, headers: withToken(headers), body: body && JSON.stringify(body), signal: AbortSignal.timeout(40_000) });
  if (!r.ok) throw await refusal(r);
  return r.json();
}

// page reads a part of a list, and where the next one is; "": there is none.
export async function page(path) {
  const r = await fetch(path, { headers: withToken({}), signal: AbortSignal.timeout(40_000) });
  if (!r.ok) throw await refusal(r);
  return { list: await r.json(), next: /<([^>]*)>; rel="next"/.exec(r.headers.get("Link") || "")?.[1] || "" };
}

// stream calls on(event, data) for each server-sent event until the last one, and
// returns why it ended.
export async function stream(path, signal, on) {
  const r = await fetch(path, { headers: withToken({ Accept: "text/event-stream" }), signal, cache: "no-store" });
  if (!r.ok) throw await refusal(r);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return "broken";
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let event = "message", data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) event = line.slice(7);
        if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (!data) continue; // a sign of life
      if (event === "end") return JSON.parse(data).why;
      on(event, JSON.parse(data));
    }
  }
}

export const pause = (ms, signal) => new Promise(done => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

// The shop's clock, on a base that nobody can set: the difference is measured,
// the middle of the quickest of a few questions being the moment of its answer.
let base = Date.now() - performance.now();

export const now = () => base + performance.now();

export async function setClock() {
  let best = Infinity;
  for (let i = 0; i < 3; i++) {
    try {
      const asked = performance.now();
      const r = await fetch("/api/time", { cache: "no-store" });
      const took = performance.now() - asked;
      const shop = r.ok ? (await r.json()).unixMillis : Date.parse(r.headers.get("Date")) + 500; // it has whole seconds
      if (took < best && Number.isFinite(shop)) {
        best = took;
        base = shop - asked - took / 2;
      }
    } catch { return false; }
  }
  return true;
}

// secret makes a name that nobody guesses.
export function secret(prefix) {
  const b = crypto.getRandomValues(new Uint8Array(12));
  return prefix + Array.from(b, x => x.toString(16).padStart(2, "0")).join("");
}
