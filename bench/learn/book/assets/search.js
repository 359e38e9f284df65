// Looks through the pages' words, which another script holds: a page that is
// opened from the disk may not load data.
const form = document.getElementById("search"), box = document.getElementById("q");
const found = document.getElementById("found"), none = document.getElementById("none");
form.hidden = false;
form.addEventListener("submit", (e) => e.preventDefault());
box.addEventListener("input", () => {
  const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const inTitle = (p) => wanted.every((w) => p.Title.toLowerCase().includes(w));
  // Those that are about it stand before those that mention it.
  const hits = wanted.length === 0 ? [] :
    words.filter((p) => wanted.every((w) => p.Title.toLowerCase().includes(w) || p.Text.includes(w))).sort((a, b) => inTitle(b) - inTitle(a));
  found.replaceChildren(...hits.map((p) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = p.File;
    link.textContent = p.Title;
    item.append(link);
    return item;
  }));
  none.hidden = wanted.length === 0 || hits.length > 0;
});
