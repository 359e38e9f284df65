
// Pictures: each can be saved as it looks, in the theme and the language of the
// moment; and an entry of a legend shows its own line alone.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
    "font-family", "font-size", "font-style", "font-weight", "font-variant-numeric"];

  // A saved file has no style sheet: what is computed goes into each element.
  const standalone = (svg) => {
    const copy = svg.cloneNode(true);
    const pairs = [[svg, copy]];
    const gone = [];
    const walk = (from, to) => [...from.children].forEach((child, i) => { pairs.push([child, to.children[i]]); walk(child, to.children[i]); });
    walk(svg, copy);
    for (const [from, to] of pairs) {
      const style = getComputedStyle(from);
      if (style.display === "none" && !["title", "desc", "defs", "pattern"].includes(from.tagName)) { gone.push(to); continue; }
      for (const name of kept) {
        const value = style.getPropertyValue(name);
        // A pattern's address is an attribute, and stands.
        if (!(name === "fill" && /^url\b/.test(value))) to.style.setProperty(name, value);
      }
      for (const { name } of [...to.attributes]) if (name.startsWith("data-") || name === "class" || name === "tabindex") to.removeAttribute(name);
      if (to.tagName === "a") to.removeAttribute("href");
    }
    gone.forEach((element) => element.remove());
    const [x, y, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const card = getComputedStyle(svg.closest("section")).backgroundColor;
    Object.entries({ x, y, width, height, fill: card }).forEach(([name, value]) => back.setAttribute(name, value));
    copy.insertBefore(back, copy.firstChild);
    Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height }).forEach(([name, value]) => copy.setAttribute(name, value));
    copy.style.minWidth = "0";
    return { width, height, source: new XMLSerializer().serializeToString(copy) };
  };

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const png = async ({ width, height, source }) => {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source);
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * width;
    canvas.height = 2 * height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };

  for (const button of all("[data-save]")) {
    button.addEventListener("click", async () => {
      const name = button.dataset.of.replace(/[^\w.-]/g, "_");
      const picture = standalone(document.getElementById(button.dataset.of));
      if (button.dataset.save === "svg") save(new Blob([picture.source], { type: "image/svg+xml" }), name + ".svg");
      else save(await png(picture), name + ".png");
    });
  }

  for (const entry of all("[data-entry]")) {
    const svg = entry.ownerSVGElement;
    const pick = (on) => {
      svg.classList.toggle("picked", on);
      all("[data-series]", svg).forEach((line) => line.classList.toggle("on", on && line.dataset.series === entry.dataset.entry));
    };
    ["mouseenter", "focus"].forEach((event) => entry.addEventListener(event, () => pick(true)));
    ["mouseleave", "blur"].forEach((event) => entry.addEventListener(event, () => pick(false)));
  }
})();
