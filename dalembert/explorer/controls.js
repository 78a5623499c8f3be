// Sliders and small pieces of the page.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// A slider with a number beside it, which takes values outside of the slider, too. `log` slides by factors.
function slider({ key, label, value, low, high, whole = false, log = false, onchange }) {
  const to = log ? Math.log : x => x, from = log ? Math.exp : x => x;
  const range = element("input", { type: "range", min: to(low), max: to(high), step: whole ? 1 : "any", value: to(value) });
  const number = element("input", { type: "number", step: "any", value: +value.toPrecision(6) });
  const row = element("div", { className: "slider" }, element("label", { textContent: label }), range, number);
  const aim = (input, name) => { input.setAttribute("aria-label", name); input.dataset.key = key; };
  aim(range, label); aim(number, `${label}, as a number`);
  row.set = (x, quietly = true) => {
    range.value = to(x); number.value = +(+x).toPrecision(6);
    row.value = +x;
    if (!quietly) onchange(+x);
  };
  row.initial = row.value = value;
  range.addEventListener("input", () => {
    const x = whole ? Math.round(from(+range.value)) : +from(+range.value).toPrecision(5);
    number.value = +x.toPrecision(6); row.value = x;
    onchange(x);
  });
  number.addEventListener("change", () => {
    const x = +number.value;
    if (number.value === "" || !Number.isFinite(x) || (log && x <= 0)) return row.set(row.value);
    row.set(x, false);
  });
  return row;
}

function choice(label, options, value, onchange) {
  const list = element("select", { onchange: () => onchange(list.value) }, ...options.map(([v, text]) => new Option(text, v)));
  list.value = value;
  list.setAttribute("aria-label", label);
  return list;
}

function card(title, ...children) {
  return element("section", { className: "card" }, element("h2", { textContent: title }), ...children);
}

function folded(title, open, ...children) {
  return element("details", { className: "card", open }, element("summary", { textContent: title }), ...children);
}

// The colours of the page, for canvases.
function themeOf(root) {
  const style = getComputedStyle(root), read = name => style.getPropertyValue(name).trim();
  return { dark: read("--dark") === "1", paper: read("--paper"), ink: read("--ink"), faint: read("--faint"),
           grid: read("--grid"), panes: [read("--first"), read("--second")] };
}
