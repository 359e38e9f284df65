// The page: a show that runs in a lab, or one that was recorded.
import { $, t, set, el, num, seconds, speak, chinese, remember, recall, theme, themed, still } from "parts";
import { Timeline } from "timeline";
import { Lane } from "lane";
import { Setup } from "setup";
import { Slides } from "slides";
import { Lab } from "source";
import { scenarioWords } from "scenarios";
import { compare } from "ledger";
import { story, tell, strikeName } from "story";

const behind = 260; // ms that a live picture stays behind what is known, so that it runs evenly
const textEvery = 250; // ms between two readings of the texts

class Page {
  constructor() {
    this.recording = JSON.parse($("recording").textContent);
    this.replays = this.recording !== null;
    this.lab = this.replays ? null : new Lab();
    this.lanes = [];
    this.picked = 0;
    this.strikes = new Map();
    this.paused = false;
    this.following = true;
    this.pace = 1;
    this.last = 0;
    this.read = 0;
  }

  async begin() {
    theme(recall("theme"));
    speak(recall("lang") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
    this.slides = new Slides(this);
    this.controls();
    addEventListener("resize", () => this.resized());
    document.addEventListener("repaint", () => this.resized());
    document.addEventListener("spoken", () => this.spoken());
    requestAnimationFrame((now) => this.frame(now));
    if (this.replays) return this.replayed();
    try {
      this.about = await this.lab.about();
    } catch (e) { return this.notice(e.message); }
    this.know(this.about);
    this.setup = new Setup(this.about, (form) => this.open(form));
    $("setup").hidden = false;
    $("tempo").replaceChildren(...this.setup.speeds.map((v) => { const o = el("option", "", t("perSecond", num(v))); o.value = v; return o; }));
    if (this.about.show) this.attach(this.about.show);
    this.spoken();
  }

  know(about) { this.strikes = new Map((about.strikes ?? []).map((s) => [s.name, s])); }

  notice(text) {
    $("notice").hidden = !text;
    set($("notice"), text);
  }

  // open starts a show.
  async open(form) {
    this.notice("");
    $("start").disabled = $("race").disabled = true;
    try { this.attach(await this.lab.begin(form)); }
    catch (e) {
      this.notice(e.message);
      if (e.code === "show_runs") await this.lab.show().then((show) => this.attach(show), () => { /* it ended meanwhile: the notice stands */ });
    } finally { $("start").disabled = $("race").disabled = false; }
  }

  // attach shows a show of the lab, from its first moment.
  attach(show) {
    this.stage(show);
    this.lab.over = false;
    this.lab.watch({
      tick: (tick) => {
        this.notice("");
        this.hear(tick);
      },
      end: () => { this.lab.over = true; this.ended(); },
      answers: (yes) => { if (!yes) this.notice(t("offline")); else this.notice(""); },
    });
    $("setup").hidden = show.state !== "ended";
    if (!this.slides.on && show.state !== "ended") $("show").scrollIntoView({ behavior: still() ? "auto" : "smooth", block: "start" });
  }

  stage(show) {
    this.show = show;
    this.over = false;
    this.time = new Timeline(show.lanes);
    this.paused = false;
    this.following = true;
    this.picked = 0;
    this.lanes = show.lanes.map((info, n) => new Lane(n, info, this));
    $("lanes").replaceChildren(...this.lanes.map((l) => l.e));
    $("lanes").dataset.n = this.lanes.length;
    $("show").hidden = false;
    $("compare").hidden = this.lanes.length < 2;
    $("export").hidden = this.replays;
    $("export").href = "/api/shows/current/recording";
    $("stop").hidden = this.replays;
    $("again").hidden = true;
    if ($("tempo").options.length) $("tempo").value = show.speed;
    this.pick(0);
    this.spoken();
  }

  hear(tick) {
    if (tick.state && tick.state !== this.show.state) {
      this.show.state = tick.state;
      this.states();
    }
    if (tick.speed && document.activeElement !== $("tempo")) $("tempo").value = tick.speed;
    this.time.take(tick);
    if (tick.state === "ended") this.ended();
  }

  ended() {
    this.over = true;
    this.show.state = "ended";
    this.states();
    this.slides.show();
  }

  replayed() {
    this.know(this.recording.about ?? {});
    this.stage(this.recording.show);
    for (const tick of this.recording.ticks) this.time.take(tick);
    this.show.state = "ended";
    this.following = false;
    this.leap(this.time.begin ?? 0);
    $("pace").parentElement.hidden = false;
    this.states();
    this.spoken();
  }

  replay() {
    this.leap(this.time.begin ?? 0);
    this.paused = false;
    this.states();
  }

  // What slides ask of the page.
  scenario() {
    if (this.show) return this.of(this.show.scenario);
    return this.setup ? this.of(this.setup.scenario) : null;
  }
  of(name) { return (this.about ?? this.recording?.about)?.scenarios?.find((s) => s.name === name) ?? { name }; }
  settings() { return this.show ? this.show.lanes.map((l) => l.setting) : this.setup?.chosen() ?? []; }
  models() { return this.time?.lanes ?? []; }
  running() { return !this.replays && this.show && !this.over; }
  start() { return this.setup?.go(this.setup.chosen()); }
  strikeAll(name) { return Promise.all(this.lanes.map((lane) => lane.press(name))); }
  press(n, name) { return $("together").checked && this.lanes.length > 1 ? this.strikeAll(name) : this.lanes[n].press(name); }
  resized() { this.force = true; }
  refresh() { if (this.time) this.texts(performance.now()); }

  pick(n) {
    if (!this.lanes[n]) return;
    this.picked = n;
    this.lanes.forEach((l, i) => l.e.classList.toggle("picked", i === n && this.lanes.length > 1));
  }

  // shares says which other lanes a strike on this one's broker or database hits.
  shares(n) {
    const s = this.show?.lanes[n]?.shares ?? {}, names = (list) => list.map((i) => this.show.lanes[i]?.setting ?? i).join(t("comma"));
    return [s.broker?.length ? t("sharesBroker", names(s.broker)) : "", s.database?.length ? t("sharesDatabase", names(s.database)) : ""].filter(Boolean).join(" ");
  }

  async strike(lane, name) {
    try {
      const r = await this.lab.strike(lane, name);
      return r.already ? t("already", r.text) : r.text;
    } catch (e) { return e.message; }
  }

  // tell opens a message's story: the lab's, or what this page has of it.
  async tell(n, id) {
    const asked = this.asked = (this.asked ?? 0) + 1;
    let told = this.recording?.stories?.[id] ?? null;
    if (!this.replays) told = await this.lab.story(id).catch(() => null);
    if (asked !== this.asked) return; // another one was asked for meanwhile
    this.told = { n, id, told };
    if (!$("story").open) $("story").showModal();
    this.retell();
  }
  retell() {
    const { n, id, told } = this.told;
    tell($("story"), this.time.lanes[n], story(this.time.lanes[n], id, this.time.of(n, id), told));
  }

  controls() {
    $("lang").addEventListener("click", () => { remember("lang", chinese() ? "en" : "zh"); speak(chinese() ? "en" : "zh"); });
    $("theme").addEventListener("click", () => { theme(themed() === "dark" ? "light" : "dark"); remember("theme", themed()); });
    $("help").addEventListener("click", () => $("keys").showModal());
    $("keys-on").checked = recall("keys") !== "off";
    $("keys-on").addEventListener("change", () => remember("keys", $("keys-on").checked ? "on" : "off"));
    for (const b of document.querySelectorAll("dialog .close")) b.addEventListener("click", () => b.closest("dialog").close());
    $("pause").addEventListener("click", () => this.pause());
    $("step").addEventListener("click", () => this.step());
    $("live").addEventListener("click", () => this.now());
    $("scrub").addEventListener("input", () => { this.paused = true; this.following = false; this.leap($("scrub").value / 1000 * this.time.end); this.states(); });
    $("pace").addEventListener("change", () => { this.pace = Number($("pace").value); });
    $("tempo").addEventListener("change", async () => { try { await this.lab.speed(Number($("tempo").value)); } catch (e) { this.notice(e.message); } });
    $("stop").addEventListener("click", async () => { try { await this.lab.end(); } catch (e) { this.notice(e.message); } });
    $("again").addEventListener("click", () => { $("setup").hidden = false; $("setup").scrollIntoView(); $("start").focus({ preventScroll: true }); });
    document.addEventListener("keydown", (e) => this.key(e));
  }

  pause() {
    if (!this.time) return;
    if (this.paused && this.time.head >= this.time.end && (this.replays || this.over)) return this.replay();
    this.paused = !this.paused;
    if (this.paused) this.following = false;
    this.states();
  }

  step() {
    if (!this.time) return;
    this.paused = true;
    this.following = false;
    this.time.step((n, move) => this.moved(n, move));
    this.run = 1600;
    this.states();
    this.texts(performance.now());
  }

  now() {
    this.paused = false;
    this.following = !this.replays;
    this.leap(this.time.end);
    this.states();
  }

  leap(to) {
    this.time.seek(to);
    this.lanes.forEach((l, n) => l.scene.settle(this.time.lanes[n]));
    this.resized();
    this.texts(performance.now());
  }

  moved(n, move) { this.lanes[n]?.scene.move(this.time.lanes[n], move); }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !$("keys-on").checked || document.querySelector("dialog[open]")) return;
    const key = e.key, onButton = e.target.closest?.("button, a, summary");
    if (e.target.closest?.("select") || (e.target.closest?.("input") && key.length > 1) || (e.target.closest?.("input") && key === " ")) return; // they have their own keys
    if (this.slides.on && (key === "ArrowRight" || key === "PageDown")) this.slides.turn(1);
    else if (this.slides.on && (key === "ArrowLeft" || key === "PageUp")) this.slides.turn(-1);
    else if (this.slides.on && key === "Escape") this.slides.close();
    else if (key === " " && !onButton) this.pause();
    else if (key === "ArrowRight") this.step();
    else if (key === "ArrowLeft" && this.time) { this.paused = true; this.following = false; this.leap(this.time.head - 1000); this.states(); }
    else if (key === "?") $("keys").showModal();
    else if (key === "Home" && this.time && this.replays) this.replay();
    else if (key === "End" && this.time) this.now();
    else if (key === "l") this.slides.on ? this.slides.close() : this.slides.begin();
    else if (key >= "1" && key <= "6" && this.lanes[key - 1]) { this.pick(key - 1); this.lanes[key - 1].e.focus(); }
    else if (key === "m" && this.lanes[this.picked]) { const d = this.lanes[this.picked].q(".messages"); d.open = !d.open; d.firstElementChild.focus(); this.refresh(); }
    else {
      const strike = [...this.strikes.values()].find((s) => s.key && s.key.toLowerCase() === key.toLowerCase());
      if (!strike || !this.lanes[this.picked] || this.replays) return;
      this.press(this.picked, strike.name);
    }
    e.preventDefault();
  }

  // frame shows the next moment.
  frame(now) {
    const dt = Math.min(100, now - this.last), gone = now - this.last;
    this.last = now;
    if (this.time) {
      const head = this.time.head;
      if (!this.paused) this.advance(gone);
      this.run = Math.max(0, (this.run ?? 0) - gone);
      const acts = !this.paused || this.run > 0 || this.force, stir = this.time.head !== head || this.force || this.run > 0;
      if (acts) {
        const wide = $("lanes").clientWidth / this.columns(), scale = wide < 900 ? 1 : Math.min(1.9, wide / (this.slides.on ? 900 : 1060));
        const slow = still() && now - (this.drawn ?? 0) < textEvery && !this.force;
        if (!slow) {
          this.drawn = now;
          this.lanes.forEach((l, n) => { if (stir || l.scene.moving()) l.draw(this.time.lanes[n], this.paused && !this.run ? 0 : dt, scale); });
        }
        this.force = false;
      }
      if (now - this.read > textEvery && (stir || this.stale)) this.texts(now);
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  advance(gone) {
    const time = this.time, far = time.end - time.head;
    if (this.following && far > 2500) return this.leap(time.end - behind); // the page slept
    const to = this.following && !this.over ? Math.min(time.end, Math.max(time.head + gone, time.end - 4 * behind)) : time.head + gone * this.pace;
    time.advance(to, (n, move) => this.moved(n, move));
    if (time.head >= time.end && (this.over || this.replays) && time.index >= time.items.length) {
      this.paused = true;
      this.run = 1600;
      this.states();
      this.stale = true;
    }
  }

  columns() { return getComputedStyle($("lanes")).gridTemplateColumns.split(" ").length; }

  texts(now) {
    this.read = now;
    this.stale = false;
    this.lanes.forEach((l, n) => l.update(this.time.lanes[n], now));
    if (this.lanes.length > 1) compare($("compared"), this.time.lanes);
    if (document.activeElement !== $("scrub")) $("scrub").value = this.time.end ? Math.round(this.time.head / this.time.end * 1000) : 1000;
    $("scrub").setAttribute("aria-valuetext", seconds(this.time.head));
    set($("clock"), t("clock", seconds(this.time.head), seconds(this.time.end)));
  }

  // states brings buttons and lines that follow from what the page does.
  states() {
    if (!this.show) return;
    const words = scenarioWords(this.of(this.show.scenario));
    set($("show-h"), words.title);
    set($("show-lead"), words.what);
    const atEnd = this.time.head >= this.time.end && (this.over || this.replays);
    set($("live"), t(this.replays || this.over ? "toEnd" : "toNow"));
    set($("pause"), t(this.paused ? (atEnd ? "replay" : "resume") : "pause"));
    $("live").disabled = this.following && !this.paused;
    $("stop").hidden = this.replays || this.over;
    $("together").parentElement.hidden = this.replays || this.over || this.lanes.length < 2;
    $("tempo").parentElement.hidden = this.replays || this.over || this.show.state === "ending";
    $("stop").disabled = this.show.state === "ending";
    $("again").hidden = this.replays || !this.over;
    $("pace").parentElement.hidden = !this.replays && !this.over;
    const state = this.replays ? t("recorded", new Date(this.recording.recordedAt ?? this.show.startedAt).toLocaleString(chinese() ? "zh-CN" : "en-GB"))
      : this.over ? t("where_ended") : this.paused ? t("where_paused") : t("where_" + (this.show.state ?? "running"));
    set($("where"), state);
  }

  spoken() {
    this.setup?.speak();
    this.lanes.forEach((l) => l.speak());
    $("shortcuts").replaceChildren(...this.shortcuts().map(([keys, what]) => {
      const th = el("th", "", ...keys.flatMap((k, i) => i ? [" ", el("kbd", "", k)] : [el("kbd", "", k)]));
      th.scope = "row";
      return el("tr", "", th, el("td", "", what));
    }));
    for (const o of $("tempo").options) set(o, t("perSecond", num(Number(o.value))));
    this.states();
    if (this.time) this.texts(performance.now());
    if ($("story").open) this.retell();
    this.slides?.show();
    this.resized();
  }

  shortcuts() {
    return [
      [[t("space")], t("k_pause")], [["→"], t("k_step")], [["←"], t("k_back")], [["End"], t("k_now")], [["1", "6"], t("k_lane")], [["M"], t("k_messages")], [["L"], t("k_slides")], [["?"], t("k_help")],
      ...[...this.strikes.values()].filter((s) => s.key && !this.replays).map((s) => [[s.key.toUpperCase()], strikeName(s.name)]),
    ];
  }
}

new Page().begin();
