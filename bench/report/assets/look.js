"use strict";
// The switches of every page: language, dark or light, print.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const root = document.documentElement;

  // Both languages are in the page; the style hides one. What can hold no
  // element, attributes and titles, is exchanged here.
  const names = ["aria-label", "title", "placeholder"];
  const chinese = () => root.lang.startsWith("zh");
  const speak = (lang) => {
    root.lang = lang;
    const zh = chinese();
    for (const element of all("[data-zh]")) {
      element.dataset.en ??= element.textContent;
      element.textContent = zh ? element.dataset.zh : element.dataset.en;
    }
    for (const name of names) {
      for (const element of all(`[data-zh-${name}]`)) {
        const kept = `data-en-${name}`;
        if (!element.hasAttribute(kept)) element.setAttribute(kept, element.getAttribute(name));
        element.setAttribute(name, element.getAttribute(zh ? `data-zh-${name}` : kept));
      }
    }
    document.dispatchEvent(new Event("spoken"));
  };

  // What was chosen stays: in the address, which can be sent to others, and in
  // the browser where it allows that to a file.
  const remember = (key, value) => {
    try { localStorage.setItem("queuelab-" + key, value); } catch { /* not for files here */ }
    const parts = location.hash.slice(1).split("&").filter((p) => p && !p.startsWith(key + "="));
    history.replaceState(null, "", "#" + [...parts, `${key}=${value}`].join("&"));
  };
  const recall = (key) => {
    const part = location.hash.slice(1).split("&").find((p) => p.startsWith(key + "="));
    if (part) return part.slice(key.length + 1);
    try { return localStorage.getItem("queuelab-" + key); } catch { return null; }
  };

  document.getElementById("lang").addEventListener("click", () => {
    speak(chinese() ? "en" : "zh-Hans");
    remember("lang", chinese() ? "zh" : "en");
  });
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember("theme", root.dataset.theme);
  });
  document.getElementById("print").addEventListener("click", () => window.print());

  const theme = recall("theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const lang = recall("lang") ?? navigator.language;
  speak(lang.startsWith("zh") ? "zh-Hans" : "en");
})();
