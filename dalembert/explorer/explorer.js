// The page: what is asked for, what is shown, and the link that keeps it.

const FIRST_FRAMES = 24, MORE_FRAMES = 90, MOST_POINTS = 20000;
const PANELS = { energy: "Energy error  H − H₀", constraints: "Constraint residuals", coordinate: "Coordinate" };

class Explorer {
  constructor(root, transport) {
    this.root = root;
    root.classList.add("dalembert");
    this.transport = transport;
    this.model = null;
    this.busy = null; // the request that is being answered
    this.time = 0;
    this.playing = true;
    this.rate = 1;
    this.stats = { latency: null, answers: 0 };
    transport.onopen = () => { this.busy = null; this.ask({ do: "model" }); };
    transport.onclose = () => { this.busy = null; this.say("reconnecting …", "waiting"); };
    transport.onmessage = answer => this.receive(answer);
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => { this.theme = themeOf(root); this.dirtyPlots = true; });
    new ResizeObserver(() => { this.dirtyPlots = true; }).observe(root);
    transport.open();
    const tick = now => { if (root.isConnected || !this.model) { this.tick(now); requestAnimationFrame(tick); } };
    requestAnimationFrame(tick);
  }

  // -- asking -----------------------------------------------------------------------------------------------------

  ask(request) {
    this.busy = { ...request, since: performance.now() };
    this.transport.send(request);
  }

  // What is most urgent: a run with the newest values, frames to show, more of the section.
  pump() {
    if (this.busy || !this.model || !this.transport.ready) return;
    const panes = this.active();
    const stale = panes.find(p => p.stale);
    if (stale) {
      stale.stale = false;
      stale.id += 1;
      stale.changed = this.changed;
      return this.ask({ do: "run", pane: stale.index, id: stale.id, method: stale.method(), h: stale.h, t1: this.t1,
                        settings: this.settings, start: this.start, coordinate: this.coordinate });
    }
    for (const pane of panes) {
      if (!pane.stage.target || pane.failed) continue;
      const run = pane.stage.target, now = Math.max(0, Math.min(run.frames - 1, Math.floor(this.frame(run))));
      const from = pane.stage.missing(now);
      if (from < 0) continue;
      let count = pane.stage.coming ? FIRST_FRAMES : MORE_FRAMES;
      for (let k = 1; k < count; k++) if (from + k >= run.frames || run.have[from + k]) { count = k; break; }
      return this.ask({ do: "frames", pane: pane.index, id: pane.id, from, count });
    }
    if (!this.section.on || document.hidden) return;
    const growing = panes.filter(p => !p.failed && !p.sectionEnded && p.points.length < MOST_POINTS);
    if (!growing.length) return;
    const pane = growing.reduce((a, b) => b.asked < a.asked ? b : a);
    pane.asked += 1;
    const { by, level, x, y } = this.section;
    this.ask({ do: "section", pane: pane.index, id: pane.id, by, level, x, y });
  }

  receive(answer) {
    this.stats.answers += 1;
    this.busy = null;
    const pane = answer.pane === undefined ? null : this.panes?.[answer.pane];
    if (answer.is === "model") this.open(answer);
    else if (pane && answer.id === pane.id) {
      if (answer.is === "run") this.showRun(pane, answer);
      else if (answer.is === "frames") this.showFrames(pane, answer);
      else if (answer.is === "section") this.showSection(pane, answer);
    }
    this.say(`${this.model ? "connected" : ""}`, "good");
    this.pump();
  }

  showRun(pane, run) {
    pane.failed = Boolean(run.error);
    pane.trouble.textContent = run.error || run.message || "";
    pane.trouble.hidden = !pane.trouble.textContent;
    if (run.error) return;
    pane.run = run;
    pane.points = []; pane.sectionEnded = false; pane.asked = 0;
    pane.stage.expect(run);
    if (this.t1 === null) { this.t1 = run.t1; this.length.set(run.t1 - run.t0); }
    const facts = run.panels.filter(p => p.key !== "coordinate").map(p => `max ${p.series.map(s => s.name).join(", ")} ${shown(p.largest, 2)}`);
    if (run.impacts !== null) facts.push(`${run.impacts} impact${run.impacts === 1 ? "" : "s"}`);
    pane.title.textContent = pane.method();
    pane.facts.textContent = [`${run.steps.toLocaleString("en")} steps, h = ${shown(run.h)}, in ${shown(1000 * run.seconds, 2)} ms`, ...facts].join("  ·  ");
    if (pane.index === 0) this.code.textContent = run.code;
    if (!this.section.chosen) this.suggestSection(run);
    this.dirtyPlots = true;
    this.keepLink();
  }

  showFrames(pane, answer) {
    if (answer.error) {
      pane.failed = true;
      pane.trouble.textContent = answer.error; pane.trouble.hidden = false;
      return;
    }
    const fresh = pane.stage.coming !== null;
    pane.stage.add(answer);
    if (fresh && pane.changed) { this.draw(); this.stats.latency = performance.now() - pane.changed; }
  }

  showSection(pane, answer) {
    if (answer.error) {
      pane.sectionEnded = true;
      this.sectionNote.textContent = answer.error;
      return;
    }
    pane.points.push(...answer.points);
    pane.sectionEnded = answer.ended;
    const until = answer.t === null ? "" : `, until t = ${shown(answer.t, 4)}`;
    this.sectionNote.textContent = `${this.active().map(p => p.points.length.toLocaleString("en")).join(" and ")} crossings${until}`;
    this.dirtySection = true;
  }

  say(text, kind) {
    if (!this.status) return;
    this.status.textContent = text;
    this.status.dataset.kind = kind;
  }

  // -- building the page ------------------------------------------------------------------------------------------

  // A model, at first and after each time the server was away: what the sliders say is kept.
  open(model) {
    if (model.error) { this.root.textContent = model.error; return; }
    const same = this.model && JSON.stringify(this.model) === JSON.stringify(model);
    this.model = model;
    if (!same) this.build();
    this.panes.forEach(p => { p.stale = p.index === 0 || this.compare; });
  }

  build() {
    const { model } = this, kept = this.transport.readLink?.() || {};
    document.title = this.transport.page ? `${model.title} · dalembert` : document.title;
    this.theme = themeOf(this.root);
    this.settings = kept.settings || {}; this.start = kept.start || {};
    this.t1 = kept.t1 ?? null; this.compare = Boolean(kept.methods?.[1]); this.coordinate = kept.coordinate || 0;
    this.section = { on: false, chosen: false, by: 0, level: 0, x: 0, y: 0, ...kept.section };
    this.panes = [0, 1].map(index => this.makePane(index, kept.methods?.[index]));
    this.plots = {};
    this.root.replaceChildren(this.header(), element("div", { className: "layout" }, this.view(), this.side()));
    this.setCompare(this.compare);
    this.setSection(this.section.on);
  }

  header() {
    this.status = element("span", { className: "status", textContent: "connected" });
    return element("header", {},
      element("div", {}, element("h1", { textContent: this.model.title }), element("p", { textContent: this.model.reference })),
      this.status);
  }

  makePane(index, kept) {
    const { model } = this, usual = model.methods[index && model.methods.length > 1 ? 1 : 0];
    const canvas = element("canvas", { role: "img" });
    canvas.setAttribute("aria-label", `the mechanism in motion${index ? ", second method" : ""}`);
    const pane = { index, id: 0, stale: false, failed: false, run: null, points: [], asked: 0, canvas, stage: new Stage(canvas),
                   name: kept?.name || usual.name, stages: kept?.stages ?? usual.value, h: kept?.h || model.h };
    pane.method = () => pane.stages ? `${pane.name}(stages=${pane.stages})` : pane.name;
    pane.title = element("strong"); pane.facts = element("span");
    pane.trouble = element("p", { className: "trouble", hidden: true, role: "status" });
    pane.figure = element("figure", { className: `pane pane${index}` }, canvas, element("figcaption", {}, pane.title, pane.facts), pane.trouble);
    return pane;
  }

  view() {
    this.play = element("button", { type: "button", className: "play", onclick: () => this.setPlaying(!this.playing) });
    this.seek = element("input", { type: "range", min: 0, max: 1, step: "any", value: 0,
      oninput: () => { this.setPlaying(false); this.time = +this.seek.value; } });
    this.seek.setAttribute("aria-label", "time");
    this.clock = element("output");
    const rates = [0.1, 0.25, 0.5, 1, 2, 4, 8].map(r => [r, `${r} ×`]);
    const rate = choice("speed", rates, 1, value => { this.rate = +value; });
    this.setPlaying(true);
    this.root.addEventListener("keydown", event => {
      if (event.key === " " && !["INPUT", "SELECT", "BUTTON", "SUMMARY"].includes(event.target.tagName)) {
        event.preventDefault();
        this.setPlaying(!this.playing);
      }
    });
    this.root.tabIndex = -1;
    const plots = Object.keys(PANELS).map(key => this.plotCard(key));
    const stages = element("div", { className: "stages" }, ...this.panes.map(p => p.figure));
    const player = element("div", { className: "player" }, this.play, this.seek, this.clock, rate);
    return element("main", {}, element("div", { className: "top" }, stages, player), element("div", { className: "plots" }, ...plots, this.sectionCard()));
  }

  plotCard(key) {
    const canvas = element("canvas", { className: "plot", onclick: event => {
      const at = this.plots[key].time(event);
      if (at !== null) { this.time = at; this.setPlaying(false); }
    } });
    canvas.setAttribute("aria-label", `${PANELS[key]} against time`);
    this.plots[key] = new Plot(canvas);
    this.plots[key].card = card(PANELS[key], canvas);
    if (key === "coordinate") {
      const names = this.model.variables.map((name, k) => [k, name]);
      const half = names.some(([, n]) => n.startsWith("p of ")) ? names.length / 2 : names.length;
      const list = choice("coordinate", names.slice(0, half), this.coordinate, value => { this.coordinate = +value; this.change(); });
      this.plots[key].card.querySelector("h2").replaceChildren("Coordinate ", list);
    }
    return this.plots[key].card;
  }

  sectionCard() {
    const canvas = element("canvas", { className: "plot tall" });
    canvas.setAttribute("aria-label", "Poincaré section");
    this.plots.section = new Plot(canvas);
    this.sectionNote = element("p", { className: "note" });
    this.plots.section.card = card("Poincaré section", canvas, this.sectionNote);
    return this.plots.section.card;
  }

  side() {
    const { model } = this;
    const sliders = (controls, values) => controls.map(c => slider({ ...c, value: values[c.key] ?? c.value,
      onchange: x => { values[c.key] = x; this.change(); } }));
    const own = sliders(model.settings, this.settings), start = sliders(model.start, this.start);
    const span = model.t1;
    this.length = slider({ key: "length", label: "time shown", value: this.t1 ?? span, low: span / 20, high: 20 * span, log: true,
      onchange: x => { this.t1 = (this.panes[0].run?.t0 || 0) + x; this.change(); } });
    this.comparing = element("input", { type: "checkbox", id: "compare", checked: this.compare, onchange: () => { this.setCompare(this.comparing.checked); this.change(); } });
    this.second = element("div", { className: "second" }, this.methodRows(this.panes[1]));
    const toggle = element("label", { className: "switch" }, this.comparing, "compare with a second method");
    const reset = element("button", { type: "button", textContent: "Reset", onclick: () => this.reset(own, start) });
    return element("aside", {},
      card("Method", this.methodRows(this.panes[0]), toggle, this.second, this.length),
      ...(own.length ? [card("Parameters", ...own, reset)] : []),
      folded("Initial values", !own.length, ...start, element("p", { className: "note", textContent: "Projected onto the constraints." })),
      this.sectionChoices(), this.codeCard());
  }

  methodRows(pane) {
    const { methods } = this.model, entry = () => methods.find(m => m.name === pane.name) || methods[0];
    const stages = element("span");
    const fill = () => {
      const all = entry().stages;
      stages.replaceChildren(...(all.length ? [choice("stages", all.map(s => [s, `s = ${s}`]), pane.stages, v => { pane.stages = +v; this.change(pane); })] : []));
    };
    const list = choice(`method ${pane.index + 1}`, methods.map(m => [m.name, m.name]), pane.name, name => {
      pane.name = name; pane.stages = entry().value; fill(); this.change(pane);
    });
    fill();
    const h = slider({ key: `h${pane.index}`, label: "h", value: pane.h, low: this.model.h / 30, high: 8 * this.model.h, log: true,
      onchange: x => { pane.h = x; this.change(pane); } });
    const swatch = element("i", { className: `swatch swatch${pane.index}` });
    return element("div", {}, element("div", { className: "method" }, swatch, list, stages), h);
  }

  sectionChoices() {
    const names = this.model.variables.map((name, k) => [k, name]), { section } = this;
    const restart = () => { section.chosen = true; this.panes.forEach(p => { p.points = []; p.sectionEnded = false; p.asked = 0; }); this.dirtySection = true; this.keepLink(); this.pump(); };
    const pick = (label, key) => element("label", { className: "pick" }, label, this.sectionPick[key] = choice(label, names, section[key], v => {
      section[key] = +v;
      if (key === "by") this.setLevel(this.panes[0].run);
      restart();
    }));
    this.sectionPick = {};
    const rows = [pick("where", "by"), pick("across", "x"), pick("up", "y")];
    this.level = element("input", { type: "number", step: "any", value: section.level, onchange: () => { section.level = +this.level.value || 0; restart(); } });
    this.level.setAttribute("aria-label", "value on the section");
    rows[0].append("= ", this.level);
    this.sectionOn = element("input", { type: "checkbox", checked: section.on, onchange: () => { this.setSection(this.sectionOn.checked); restart(); } });
    return folded("Poincaré section", section.on, element("label", { className: "switch" }, this.sectionOn, "let it grow"), ...rows);
  }

  // A section that the first run crosses, and the last coordinate with its momentum.
  suggestSection(run) {
    const { section } = this, n = this.model.variables.length, half = Math.floor(n / 2);
    section.chosen = true;
    section.by = 0;
    section.x = Math.max(0, (n > 1 ? half : 1) - 1);
    section.y = n - 1;
    this.setLevel(run);
    for (const key of ["by", "x", "y"]) this.sectionPick[key].value = section[key];
  }

  setLevel(run) {
    const [low, high] = run ? run.ranges[this.section.by] : [0, 0];
    this.section.level = low < 0 && high > 0 ? 0 : +((low + high) / 2).toPrecision(3);
    this.level.value = this.section.level;
  }

  codeCard() {
    this.code = element("code");
    const copy = (label, text) => {
      const button = element("button", { type: "button", textContent: label, onclick: async () => {
        await navigator.clipboard.writeText(text());
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = label; }, 1200);
      } });
      return button;
    };
    const buttons = [copy("Copy code", () => this.code.textContent)];
    if (this.transport.page) buttons.push(copy("Copy link", () => location.href));
    return folded("Code that makes this run", true, element("pre", {}, this.code), element("div", { className: "row" }, ...buttons));
  }

  // -- changes ----------------------------------------------------------------------------------------------------

  // Something moved: of one pane, or of all.
  change(pane = null) {
    this.changed = performance.now();
    (pane ? [pane] : this.active()).forEach(p => { p.stale = true; });
    this.pump();
  }

  setCompare(on) {
    this.compare = on;
    this.panes[1].figure.hidden = this.second.hidden = !on;
    this.root.classList.toggle("comparing", on);
    this.dirtyPlots = true;
  }

  setSection(on) {
    this.section.on = on;
    this.plots.section.card.hidden = !on;
    this.dirtySection = true;
    this.pump();
  }

  setPlaying(on) {
    this.playing = on;
    this.play.textContent = on ? "Pause" : "Play";
  }

  reset(own, start) {
    for (const key of Object.keys(this.settings)) delete this.settings[key];
    for (const key of Object.keys(this.start)) delete this.start[key];
    this.model.settings.forEach((c, k) => own[k].set(c.value));
    this.model.start.forEach((c, k) => start[k].set(c.value));
    this.change();
  }

  active() { return this.compare ? this.panes : this.panes.slice(0, 1); }

  // The address says all that is shown, so that it can be kept and opened again.
  keepLink() {
    const methods = this.active().map(({ name, stages, h }) => ({ name, stages, h }));
    const { settings, start, t1, section, coordinate } = this;
    this.transport.writeLink?.({ settings, start, methods, t1, coordinate, section: section.on ? section : undefined });
  }

  // -- drawing ----------------------------------------------------------------------------------------------------

  frame(run) { return run.t1 > run.t0 ? (this.time - run.t0) / (run.t1 - run.t0) * (run.frames - 1) : 0; }

  tick(now) {
    const passed = this.before ? Math.min(0.1, (now - this.before) / 1000) : 0;
    this.before = now;
    if (!this.panes) return;
    const run = this.panes[0].stage.run;
    if (run) {
      const end = Math.max(...this.active().map(p => p.stage.run?.t1 ?? run.t1));
      if (this.playing) this.time += passed * this.rate * run.speed;
      if (this.time > end || this.time < run.t0) this.time = this.playing ? run.t0 : Math.min(Math.max(this.time, run.t0), end);
      this.seek.min = run.t0; this.seek.max = end; this.seek.value = this.time;
      this.clock.textContent = `t = ${(this.time).toFixed(end - run.t0 < 1 ? 4 : 2)}`;
    }
    const waits = this.busy?.do === "run" && performance.now() - this.busy.since > 400;
    if (waits) this.say("compiling …", "waiting");
    this.draw();
    this.pump();
  }

  draw() {
    for (const pane of this.active()) if (pane.stage.run) pane.stage.draw(Math.max(0, this.frame(pane.stage.run)), this.theme);
    if (this.playing || this.dirtyPlots || this.plotted !== this.time) this.drawPlots();
    if (this.dirtySection) {
      this.dirtySection = false;
      this.plots.section.cloud(this.active().map(p => ({ points: p.points, color: this.theme.panes[p.index] })), this.theme);
    }
  }

  drawPlots() {
    if (this.dirtyPlots) this.dirtySection = true;
    this.dirtyPlots = false;
    this.plotted = this.time;
    const panes = this.active().filter(p => p.run);
    for (const key of Object.keys(PANELS)) {
      const found = panes.map(p => [p, p.run.panels.find(panel => panel.key === key)]).filter(([, panel]) => panel);
      this.plots[key].card.hidden = !found.length;
      if (!found.length) continue;
      const curves = found.flatMap(([p, panel]) => panel.series.map((s, k) => ({ ...s, color: this.theme.panes[p.index], dash: k ? [4, 3] : [] })));
      this.plots[key].curves(curves, found[0][1].log, this.theme, this.time);
    }
  }
}

// -- ways to the server ---------------------------------------------------------------------------------------------

// A socket to the server that sent this page; it comes back when the server does.
function socket() {
  const token = new URLSearchParams(location.search).get("token") || "";
  const way = { page: true, ready: false };
  let line = null, wait = 250;
  way.open = () => {
    line = new WebSocket(`ws://${location.host}/ask?token=${encodeURIComponent(token)}`);
    line.onopen = () => { way.ready = true; wait = 250; way.onopen(); };
    line.onmessage = event => way.onmessage(JSON.parse(event.data));
    line.onclose = () => {
      way.ready = false;
      way.onclose();
      setTimeout(way.open, wait);
      wait = Math.min(2000, 1.5 * wait);
    };
  };
  way.send = request => line.send(JSON.stringify(request));
  way.readLink = () => { try { return JSON.parse(decodeURIComponent(location.hash.slice(1))); } catch { return null; } };
  way.writeLink = state => history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(state))}`);
  return way;
}

// The kernel of a notebook.
function kernel(model) {
  const way = { page: false, ready: false };
  way.open = () => {
    model.on("msg:custom", answer => way.onmessage(answer));
    way.ready = true;
    way.onopen();
  };
  way.send = request => model.send(request);
  return way;
}

const place = document.getElementById("dalembert-explore");
if (place) window.explorer = new Explorer(place, socket());

export default { render({ model, el }) { new Explorer(el, kernel(model)); } };
