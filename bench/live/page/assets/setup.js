// The form: what to show, over which queues, how fast.
import { $, t, el, num, set, known } from "parts";
import { scenarioWords } from "scenarios";

const lanesAtMost = 6;
const noSpeeds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

export class Setup {
  constructor(about, start) {
    this.about = about;
    this.start = start;
    this.speeds = about.limits?.speeds ?? noSpeeds;
    this.lanes = about.limits?.lanes ?? lanesAtMost;
    this.scenario = about.scenarios[0]?.name ?? "";
    this.picked = new Set();
    $("speed").max = this.speeds.length - 1;
    $("speed").addEventListener("input", () => this.dials());
    $("consumers").addEventListener("input", () => this.dials());
    $("form").addEventListener("submit", (e) => { e.preventDefault(); this.go(this.chosen()); });
    $("race").addEventListener("click", () => this.race());
    this.suggest();
    this.speak();
  }

  go(settings) {
    this.start({ scenario: this.scenario, settings, speed: this.speeds[$("speed").value], consumers: Number($("consumers").value) });
  }

  chosen() { return this.about.settings.filter((s) => this.picked.has(s.name)).map((s) => s.name); }

  // race is the flash sale over one setting of each kind of queue that there is here.
  race() {
    const sale = this.about.scenarios.find((s) => s.name === "spike") ?? this.about.scenarios[0];
    const kinds = new Set(), settings = [];
    const preferred = this.chosen().length > 1 ? this.chosen() : sale.settings?.length > 1 ? sale.settings : this.about.settings.map((s) => s.name);
    for (const name of preferred) {
      const s = this.about.settings.find((one) => one.name === name);
      if (!s?.available || settings.length >= this.lanes || (preferred.length > this.lanes && kinds.has(s.backend))) continue;
      kinds.add(s.backend);
      settings.push(s.name);
    }
    this.scenario = sale.name;
    this.picked = new Set(settings);
    this.speak();
    this.go(settings);
  }

  // suggest picks what the scenario is best seen on.
  suggest() {
    const scenario = this.about.scenarios.find((s) => s.name === this.scenario);
    const there = (name) => this.about.settings.some((s) => s.name === name && s.available);
    const some = (scenario?.settings ?? []).filter(there).slice(0, this.lanes);
    const first = some[0] ?? this.about.settings.find((s) => s.available)?.name;
    this.picked = new Set(scenario?.name === "spike" ? some : first ? [first] : []);
    const at = this.speeds.findIndex((v) => v >= (scenario?.speed ?? 5));
    $("speed").value = at < 0 ? this.speeds.length - 1 : at;
    if (scenario?.consumers) $("consumers").value = scenario.consumers;
    this.dials();
  }

  dials() {
    const speed = t("perSecondLong", num(this.speeds[$("speed").value]));
    set($("speed-is"), t("perSecond", num(this.speeds[$("speed").value])));
    $("speed").setAttribute("aria-valuetext", speed);
    set($("consumers-is"), $("consumers").value);
  }

  speak() {
    $("scenarios").replaceChildren(...this.about.scenarios.map((s) => {
      const words = scenarioWords(s), input = el("input", "");
      input.type = "radio";
      input.name = "scenario";
      input.value = s.name;
      input.checked = s.name === this.scenario;
      input.addEventListener("change", () => { this.scenario = s.name; this.suggest(); this.settings(); });
      return el("label", "card", input, el("span", "", el("b", "", words.title), el("small", "", words.what)));
    }));
    this.settings();
    this.dials();
  }

  settings() {
    const groups = Map.groupBy(this.about.settings, (s) => s.backend), open = new Set([...document.querySelectorAll(".group[open]")].map((g) => g.dataset.backend));
    $("settings").replaceChildren(...[...groups].map(([backend, all]) => {
      const group = el("details", "group"), here = all.filter((s) => s.available).length;
      group.dataset.backend = backend;
      group.open = open.has(backend) || all.some((s) => this.picked.has(s.name));
      group.append(
        el("summary", "", known("backend_" + backend) ? t("backend_" + backend) : backend, el("small", "", here ? t("settingsHere", all.length) : all[0].why || t("notHere"))),
        el("div", "cards", ...all.map((s) => this.setting(s))),
      );
      return group;
    }));
    this.told();
  }

  setting(s) {
    const input = el("input", "");
    input.type = "checkbox";
    input.name = "setting";
    input.value = s.name;
    input.checked = this.picked.has(s.name);
    input.disabled = !s.available;
    input.addEventListener("change", () => {
      if (input.checked) this.picked.add(s.name);
      else this.picked.delete(s.name);
      this.told();
    });
    const text = el("span", "", el("b", "", s.name), el("small", "", s.promise ?? ""));
    text.lastChild.lang = "en";
    if (!s.available) {
      text.append(el("small", "why", s.why || t("notHere")));
      input.title = s.why || t("notHere");
    }
    return el("label", "card", input, text);
  }

  // told says what is picked, and greys what would be one too many.
  told() {
    const full = this.picked.size >= this.lanes, text = this.picked.size ? t("pickedN", this.picked.size, [...this.picked].join(t("comma"))) : t("pickOne");
    set($("chosen"), full ? text + " " + t("noMore", this.lanes) : text);
    for (const input of document.querySelectorAll('input[name="setting"]')) {
      const s = this.about.settings.find((one) => one.name === input.value);
      input.disabled = !s.available || (full && !input.checked);
    }
    $("start").disabled = this.picked.size === 0;
    $("start").title = this.picked.size === 0 ? t("pickOne") : "";
  }
}
