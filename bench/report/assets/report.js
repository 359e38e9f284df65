"use strict";
// Without this script the page is whole: it only sorts, filters, opens, saves.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;

  const chinese = () => root.lang.startsWith("zh");

  // Sorting, within one table, which is one profile. What is not ranked stays below what is, whichever way it is sorted;
  // what has no number stays below what has one.
  const valueOf = (row, column) => {
    const field = row.cells[column];
    return field.dataset.sort === undefined ? field.innerText.trim() : Number(field.dataset.sort);
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
    const left = cells.filter((c) => !c.classList.contains("away")).length;
    shown.textContent = active ? (chinese() ? shown.dataset.zhDataForm : shown.dataset.form).replace("{0}", left).replace("{1}", cells.length) : "";
  };
  find.addEventListener("input", filter);
  document.addEventListener("spoken", filter);
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

  // A link to a cell opens it, and the details around what is linked, also when
  // a filter had put it away.
  const open = () => {
    const place = location.hash.slice(1).split("&").find((p) => p && !p.includes("="));
    const target = place && document.getElementById(decodeURIComponent(place));
    if (!target) return;
    for (let d = target.closest("details"); d; d = d.parentElement.closest("details")) {
      d.classList.remove("away");
      d.open = true;
    }
    target.scrollIntoView();
    target.querySelector("summary")?.focus({ preventScroll: true });
  };
  addEventListener("hashchange", open);

  // The JSON of a cell is written when somebody looks.
  for (const box of all("details.json")) {
    box.addEventListener("toggle", () => {
      const pre = box.querySelector("pre");
      if (!pre.textContent) pre.textContent = JSON.stringify(data.result.cells[box.parentElement.dataset.cell], null, 2);
    });
  }

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details.cell:not([open]), details.table:not([open])");
    opened.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((d) => { d.open = false; }));

  open();

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
