// The page's own small parts: words in the reader's language, elements whose
// content is always text, and what a browser remembers.
import { words } from "words";

export const $ = (id) => document.getElementById(id);
export const root = document.documentElement;
export const chinese = () => root.lang.startsWith("zh");

// t is a sentence of the dictionary, with {0} and so on filled in.
export function t(key, ...values) {
  const pair = words[key];
  if (!pair) throw new Error("no such words: " + key);
  return pair[chinese() ? 1 : 0].replace(/\{(\d)\}/g, (_, i) => String(values[i]));
}
export const known = (key) => Object.hasOwn(words, key);

// missing stands for what nobody knows: it is never a zero.
export const missing = (v) => v === null || v === undefined;
export const num = (v) => missing(v) ? t("unknown") : v.toLocaleString(chinese() ? "zh-CN" : "en-GB");
export const short = (v) => missing(v) ? "?" : v < 10000 ? String(Math.round(v)) : v < 1e6 ? (v / 1e3).toFixed(v < 1e5 ? 1 : 0) + "k" : (v / 1e6).toFixed(1) + "M";
export const seconds = (ms) => (ms / 1000).toFixed(1) + " s";

// nameOf is a process for people: the lab's own names are English.
const brands = { redis: "Redis", rabbitmq: "RabbitMQ", kafka: "Kafka", nats: "NATS", postgres: "PostgreSQL", sqlite: "SQLite" };
export function nameOf(p) {
  const [, role, n] = /^(consumer|both|producer)(?: (\d+))?$/.exec(p.name ?? "") ?? [];
  if (role === "consumer") return t("consumerN", n ?? "");
  if (role === "both") return t("bothN", n ?? "");
  if (role) return n > 1 ? t("buyersN", n) : t("buyers");
  return brands[p.name] ?? (p.name || t("processN", p.n));
}

export function el(tag, cls, ...children) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
}

// set changes an element only where its text changed: a screen reader and a
// selection notice every change.
export function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

export function button(cls, text, press) {
  const b = el("button", cls, text);
  b.type = "button";
  b.addEventListener("click", press);
  return b;
}

// speak puts the words of the language on all that stands in the page itself.
export function speak(lang) {
  root.lang = lang === "zh" ? "zh-Hans" : "en";
  for (const e of document.querySelectorAll("[data-t]")) set(e, t(e.dataset.t));
  for (const e of document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", t(e.dataset.label));
  set($("lang"), chinese() ? "English" : "中文");
  $("lang").lang = chinese() ? "en" : "zh-Hans";
  document.title = t("title");
  document.dispatchEvent(new Event("spoken"));
}

export function remember(key, value) {
  try { localStorage.setItem("queuelab-" + key, value); } catch { /* a file may not */ }
}

export function recall(key) {
  try { return localStorage.getItem("queuelab-" + key); } catch { return null; }
}

// still is whether the reader asked for no motion.
const motion = matchMedia("(prefers-reduced-motion: reduce)");
export const still = () => motion.matches;

// colours are those of the style, resolved for dark or light: a canvas takes
// no custom properties.
const names = ["page", "card", "ink", "muted", "rule", "link", "e2e", "publish", "good", "good-ink", "bad", "bad-ink", "warn", "warn-ink",
  "soft", "soft-ink", "none", "none-ink", "lost", "twice", "doubt", "done", "ice", "pipe", "cell", "wire", "c1", "c2", "c3", "c4"];
let palette = null;
const dark = matchMedia("(prefers-color-scheme: dark)");
export function colours() {
  if (palette) return palette;
  const probe = el("span");
  probe.hidden = true;
  document.body.append(probe);
  palette = {};
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return palette;
}
export function repaint() {
  palette = null;
  document.dispatchEvent(new Event("repaint"));
}
dark.addEventListener("change", repaint);

export function theme(to) {
  if (to !== "dark" && to !== "light") return;
  root.dataset.theme = to;
  repaint();
}
export const themed = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
