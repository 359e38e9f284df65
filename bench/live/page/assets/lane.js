// A lane on the page: its picture, its buttons, its counts and its messages.
import { $, t, el, set, button } from "parts";
import { Scene } from "scene";
import { Ledger, showFacts, summary, findingsOf } from "ledger";
import { strikeName, placeName } from "story";

export class Lane {
  // desk is what the page does for a lane: strike, tell, pick.
  constructor(n, info, desk) {
    this.n = n;
    this.info = info;
    this.desk = desk;
    this.e = $("lane").content.firstElementChild.cloneNode(true);
    this.e.dataset.lane = n;
    this.q = (s) => this.e.querySelector(s);
    set(this.q("h3"), info.setting);
    this.scene = new Scene(this.q("canvas"));
    this.ledger = new Ledger(this.q(".counts"));
    this.buttons = new Map();
    this.heard = 0;
    this.q("canvas").addEventListener("click", (e) => {
      const id = this.scene.at(e.offsetX, e.offsetY);
      desk.pick(n);
      if (id) desk.tell(n, id);
    });
    this.q("canvas").addEventListener("mousemove", (e) => {
      const id = this.scene.at(e.offsetX, e.offsetY) ?? "";
      if (e.target.title !== id) e.target.title = id;
      e.target.style.cursor = id ? "pointer" : "";
    });
    for (const d of this.e.querySelectorAll("details.more")) d.addEventListener("toggle", () => desk.refresh());
    this.e.addEventListener("focusin", () => desk.pick(n));
    this.speak();
  }

  speak() {
    const { info } = this;
    set(this.q(".promise"), info.promise ?? "");
    this.q(".promise").lang = "en";
    set(this.q("caption"), t("ledgerSays"));
    set(this.q(".facts summary"), t("brokerSays"));
    set(this.q(".messages summary"), t("messages"));
    set(this.q(".messages p"), t("messagesLead"));
    this.q(".strikes").setAttribute("aria-label", t("strikesOf", info.setting));
    this.ledger.rows.forEach(({ row }, key) => { set(row.cells[0], t("count_" + key)); row.title = t("means_" + key); });
    this.laid = null;
    this.tagged = null;
    this.listed = null;
    this.last = null;
    this.heard = -Infinity;
  }

  // tags say what the queue promises, and where the lane stands.
  tags(lane) {
    const now = [lane.guarantee, lane.state, lane.error].join();
    if (now === this.tagged) return;
    this.tagged = now;
    const [guarantee, state] = this.e.querySelectorAll(".tag");
    set(guarantee, lane.guarantee === "at most once" ? t("atMostOnce") : lane.guarantee === "at least once" ? t("atLeastOnce") : lane.guarantee ?? "");
    guarantee.hidden = !lane.guarantee;
    set(state, lane.state ? t("lane_" + lane.state) : "");
    state.hidden = !lane.state || lane.state === "running";
    set(this.q(".failed"), lane.error ?? "");
    this.q(".failed").hidden = !lane.error;
  }

  // strikes lays out the buttons: what a lane cannot have is greyed, and why
  // stands below them. What undoes a strike is there while that stands.
  strikes(lane) {
    const room = this.q(".strikes"), why = [], shown = room.querySelector("details")?.open;
    const at = room.contains(document.activeElement) ? document.activeElement.dataset.strike : null;
    this.buttons.clear();
    room.replaceChildren();
    if (this.desk.replays) return;
    for (const s of lane?.available ?? this.info.strikes ?? []) {
      const about = this.desk.strikes.get(s.name), b = button("strike", strikeName(s.name), () => this.desk.press(this.n, s.name));
      b.dataset.strike = s.name;
      b.title = about?.summary ?? "";
      if (about && !about.heals) b.setAttribute("aria-pressed", "false");
      if (about?.key) {
        const key = el("kbd", "", about.key.toUpperCase());
        key.setAttribute("aria-hidden", "true");
        b.append(key);
        b.setAttribute("aria-keyshortcuts", about.key);
      }
      const heals = about?.heals && !s.name.startsWith("start-");
      if (s.available === false) {
        b.disabled = true;
        b.title = s.why;
        if (!heals) why.push(el("li", "", el("b", "", strikeName(s.name)), ": ", s.why));
      }
      this.buttons.set(s.name, { b, s, heals });
      room.append(b);
    }
    const others = this.desk.shares(this.n);
    if (others) room.append(el("p", "sub whynot", others));
    if (why.length) {
      const more = el("details", "whynot", el("summary", "", t("whyNot", why.length)), el("ul", "", ...why));
      more.open = shown ?? why.length < 3;
      room.append(more);
    }
    if (lane) this.pressed(lane);
    if (at) this.buttons.get(at)?.b.focus();
  }

  // pressed shows which strikes stand, as the server last said.
  pressed(lane) {
    const over = lane.ended !== null || lane.state === "failed" || lane.state === "ended";
    for (const [name, { b, s, heals }] of this.buttons) {
      const on = !over && lane.struck.includes(name), healed = this.desk.strikes.get(name)?.heals;
      if (b.hasAttribute("aria-pressed") && b.getAttribute("aria-pressed") !== String(on)) b.setAttribute("aria-pressed", String(on));
      b.hidden = Boolean(heals) && !lane.struck.includes(healed);
      b.disabled = s.available === false || over || lane.state === "starting";
    }
  }

  async press(name) {
    const { b } = this.buttons.get(name) ?? {};
    if (!b || b.disabled || b.hidden || b.getAttribute("aria-busy") === "true") return;
    b.setAttribute("aria-busy", "true");
    try { this.said(await this.desk.strike(this.n, name)); }
    finally { b.removeAttribute("aria-busy"); }
  }

  said(text) { if (text) set(this.q(".deed"), text); }

  draw(lane, dt, scale) { this.scene.draw(lane, dt, scale); }

  // update brings all that is text up to the moment.
  update(lane, now) {
    this.ledger.update(lane);
    if (this.q(".facts").open) showFacts(this.q(".facts table"), lane);
    if (this.q(".messages").open) this.messages(lane);
    const last = lane.strikes.at(-1);
    if (last && last !== this.last) {
      this.last = last;
      this.said(`${(last.at / 1000).toFixed(1)} s: ${strikeName(last.name)}, ${t("state_" + last.state)}${last.text ? ": " + last.text : ""}`);
    }
    if (!last && this.last) { this.last = null; set(this.q(".deed"), ""); }
    if (lane.available !== this.laid) { this.laid = lane.available; this.strikes(lane); }
    this.pressed(lane);
    this.tags(lane);
    const text = summary(lane);
    if (now - this.heard > 5000 || lane.ended) {
      this.heard = now;
      set(this.q(".summary"), text);
    }
    this.q("canvas").setAttribute("aria-label", t("pictureOf", text));
    const found = findingsOf(lane).join("\n");
    if (this.found !== found) {
      this.found = found;
      this.q(".findings").replaceChildren(...findingsOf(lane).map((f) => { const li = el("li", "tag v-soft", f); li.lang = "en"; return li; }));
    }
  }

  // messages lists those worth a look: lost, repeated, unknown, then the newest.
  messages(lane) {
    const rows = [], add = (id, mark, cls) => { if (rows.length < 60 && !rows.some((r) => r[0] === id)) rows.push([id, mark, cls]); };
    for (const m of lane.lost.values()) add(m.id, `${t("lost")}: ${placeName(m.place)}`, "v-bad");
    for (const id of lane.repeated.slice(-20)) add(id, t("cameAgain"), "v-warn");
    for (const m of lane.unknown.values()) add(m.id, t("unknown"), "v-soft");
    for (const m of [...lane.held.values()].slice(-10)) add(m.id, t("held"), "");
    for (const m of [...lane.waiting.values()].slice(-10)) add(m.id, t("waits"), "");
    for (const id of lane.finished.slice(-20).reverse()) add(id, "", "");
    const key = rows.map((r) => r.join()).join(";");
    if (key === this.listed) return;
    this.listed = key;
    const at = this.e.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    this.q(".ids").replaceChildren(...rows.map(([id, mark, cls]) => {
      const b = button(cls ? "tag " + cls : "", mark ? `${id} · ${mark}` : id, () => this.desk.tell(this.n, id));
      b.dataset.id = id;
      return el("li", "", b);
    }));
    if (at) this.q(`[data-id="${CSS.escape(at)}"]`)?.focus();
  }
}
