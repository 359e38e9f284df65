// Slides: one show told in six steps, in large type, for a room.
import { $, t, el, set, num } from "parts";
import { scenarioWords } from "scenarios";
import { strikeName } from "story";

const steps = ["what", "start", "fault", "see", "counts", "point"];

export class Slides {
  // desk tells the scenario, the lanes and whether a show runs, and does deeds.
  constructor(desk) {
    this.desk = desk;
    this.n = -1;
    $("slides").addEventListener("click", () => this.begin());
    $("slide-end").addEventListener("click", () => this.close());
    $("slide-back").addEventListener("click", () => this.turn(-1));
    $("slide-next").addEventListener("click", () => this.turn(1));
    $("slide-deed").addEventListener("click", () => this.deed());
    $("slide-full").addEventListener("click", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else document.documentElement.requestFullscreen().catch(() => { /* the browser does not want to: the slides go on as they are */ });
    });
  }

  get on() { return this.n >= 0; }

  begin() {
    document.body.classList.add("slides");
    $("slide").hidden = false;
    this.n = 0;
    this.show();
    $("slide-next").focus();
  }

  close() {
    document.body.classList.remove("slides");
    delete document.body.dataset.slide;
    $("slide").hidden = true;
    this.n = -1;
    if (document.fullscreenElement) document.exitFullscreen();
    this.desk.resized();
    $("slides").focus();
  }

  turn(by) {
    this.n = Math.min(steps.length - 1, Math.max(0, this.n + by));
    this.show();
  }

  show() {
    if (!this.on) return;
    const step = steps[this.n], scenario = this.desk.scenario(), words = scenario ? scenarioWords(scenario) : null, lanes = this.desk.models();
    document.body.dataset.slide = step;
    set($("slide-step"), t("slideOf", this.n + 1, steps.length));
    set($("slide-h"), step === "what" && words ? words.title : t("slide_" + step));
    const says = [];
    if (words) {
      if (step === "what") says.push(words.what);
      if (step === "start") says.push(t("slideStart", this.desk.settings().join(t("comma"))));
      if (step === "fault") says.push(words.fault);
      if (step === "see") says.push(words.see);
      if (step === "point") says.push(words.point);
    }
    if (step === "point") says.push(...lanes.map((l) => t("slideCounts", l.info.setting, num(l.counts.sent), num(l.counts.effects), num(l.counts.lost), num(l.counts.redelivered))));
    $("slide-text").replaceChildren(...says.filter(Boolean).map((s) => el("p", "", s)));
    const deed = this.deedOf(step);
    $("slide-deed").hidden = !deed;
    if (deed) set($("slide-deed"), deed.name);
    $("slide-back").disabled = this.n === 0;
    $("slide-next").disabled = this.n === steps.length - 1;
    this.desk.resized();
  }

  deedOf(step) {
    if (this.desk.replays) return step === "start" ? { name: t("replay"), do: () => this.desk.replay() } : null;
    if (step === "start" && !this.desk.running()) return { name: t("start"), do: () => this.desk.start() };
    const strike = this.desk.scenario()?.strikes?.[0];
    if (step === "fault" && strike && this.desk.running()) return { name: strikeName(strike), do: () => this.desk.strikeAll(strike) };
    return null;
  }

  async deed() {
    await this.deedOf(steps[this.n])?.do();
    this.show();
  }
}
