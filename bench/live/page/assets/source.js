// The lab behind the page. A page with a recording in it has none, and asks
// nobody.
import { t, known } from "parts";

async function call(method, path, body) {
  let r;
  const headers = { "X-Queuelab": "1" };
  if (body) headers["Content-Type"] = "application/json";
  try {
    r = await fetch(path, { method, headers, cache: "no-store", credentials: "same-origin", body: body && JSON.stringify(body), signal: AbortSignal.timeout(60000) });
  } catch { throw new Error(t("offline")); }
  const answer = await r.json().catch(() => ({}));
  if (r.ok) return answer;
  const key = "e_" + answer.code;
  throw Object.assign(new Error(known(key) ? t(key) : answer.error || t("refused", r.status)), { code: answer.code, status: r.status });
}

export class Lab {
  about() { return call("GET", "/api/about"); }
  begin(show) { return call("POST", "/api/shows", show); }
  show() { return call("GET", "/api/shows/current"); }
  end() { return call("DELETE", "/api/shows/current"); }
  speed(speed) { return call("PATCH", "/api/shows/current", { speed }); }
  strike(lane, strike) { return call("POST", "/api/shows/current/strikes", { lane, strike }); }
  story(id) { return call("GET", "/api/shows/current/messages/" + encodeURIComponent(id)); }

  // watch tells each tick of the show, and whether the lab answers. The browser
  // comes back by itself, with the number of the last tick that it had.
  watch({ tick, end, answers }) {
    this.leave();
    const stream = this.stream = new EventSource("/api/shows/current/events");
    stream.addEventListener("open", () => answers(true));
    stream.addEventListener("message", (e) => tick(JSON.parse(e.data)));
    stream.addEventListener("end", () => { stream.close(); end(); });
    stream.addEventListener("error", () => { if (this.stream === stream && !this.over) answers(false); });
  }
  leave() { this.stream?.close(); this.stream = null; }
}
