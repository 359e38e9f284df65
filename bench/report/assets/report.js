"use strict";
// Without this script the page is whole: it only sorts, filters, opens, saves.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("data").textContent);

  // Sorting. What is not ranked stays below what is, whichever way it is sorted;
  // what has no number stays below what has one.
  const valueOf = (row, column) => {
    const field = row.cells[column];
    return field.dataset.v === undefined ? field.textContent.trim() : Number(field.dataset.v);
  };
  const compare = (a, b, direction) => {
    const numbers = typeof a === "number", other = typeof b === "number";
    if (numbers !== other) return numbers ? -1 : 1;
    return direction * (numbers ? a - b : a.localeCompare(b));
  };
  for (const table of all("table.sortable")) {
    all("th button", table).forEach((button, column) => {
      button.addEventListener("click", () => {
        const head = button.closest("th");
        const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        all("th", table).forEach((th) => th.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
        const body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) =>
          ("unranked" in a.dataset) - ("unranked" in b.dataset) || compare(valueOf(a, column), valueOf(b, column), direction));
        body.append(...rows);
      });
    });
  }

  // Filtering, by words (all must be there), backends and verdicts (any of them).
  const find = document.getElementById("find");
  const clear = document.getElementById("clear");
  const shown = document.getElementById("shown");
  const picked = (kind) => all(`[data-pick="${kind}"][aria-pressed="true"]`).map((b) => b.dataset.value);
  const things = all("[data-search]");
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const backends = picked("backend"), verdicts = picked("verdict");
    for (const thing of things) {
      const d = thing.dataset;
      const fits = words.every((w) => d.search.includes(w)) &&
        (!backends.length || backends.includes(d.backend)) &&
        (!verdicts.length || d.verdict === undefined || verdicts.includes(d.verdict));
      thing.classList.toggle("away", !fits);
    }
    const active = words.length + backends.length + verdicts.length > 0;
    clear.hidden = !active;
    const cells = all("[data-cell]");
    shown.textContent = active ? `${cells.filter((c) => !c.classList.contains("away")).length} of ${cells.length} cells` : "";
  };
  find.addEventListener("input", filter);
  for (const button of all("[data-pick]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  clear.addEventListener("click", () => {
    find.value = "";
    all("[data-pick]").forEach((b) => b.setAttribute("aria-pressed", "false"));
    filter();
    find.focus();
  });

  // A link to a cell opens it, also when a filter had put it away.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.classList.remove("away");
      target.open = true;
      target.scrollIntoView();
      target.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", open);
  open();

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const files = {
    json: () => ["result.json", "application/json", JSON.stringify(data.result, null, 2) + "\n"],
    csv: () => ["cells.csv", "text/csv;charset=utf-8", data.csv],
  };
  for (const button of all("[data-download]")) {
    button.addEventListener("click", () => {
      const [name, type, text] = files[button.dataset.download]();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

})();
