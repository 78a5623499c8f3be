// A mechanism in motion on a canvas: frames arrive in parts, and are drawn at any time in between.

const TRAIL = 240; // frames behind the traced points

function mix(color, other, share) {
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  const both = [0, 1, 2].map(k => Math.round((1 - share) * part(color, k) + share * part(other, k)));
  return "#" + both.map(x => x.toString(16).padStart(2, "0")).join("");
}

// The colour of a part on this paper: dark ones are lightened where the paper is dark.
function tone(color, theme) {
  if (!theme.dark) return color;
  const [r, g, b] = [1, 3, 5].map(k => parseInt(color.slice(k, k + 2), 16));
  const light = (0.3 * r + 0.59 * g + 0.11 * b) / 255;
  return mix(color, "#ffffff", light < 0.3 ? 0.72 : light < 0.5 ? 0.38 : 0.1);
}

class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.run = null; // what is shown
    this.coming = null; // what was asked for, until its first frames are here
    this.camera = null;
    this.turn = null;
    this.zoom = 1;
    this.listen();
  }

  // A new run: the old one stays until the first frames of the new one are here.
  expect(run) {
    this.coming = { ...run, parts: null, have: new Uint8Array(run.frames) };
  }

  get target() { return this.coming || this.run; }

  // The first frame at or after `from` (then from the start) that is not here yet; -1 if all are.
  missing(from) {
    const { have, frames } = this.target;
    for (let k = 0; k < frames; k++) {
      const i = (from + k) % frames;
      if (!have[i]) return i;
    }
    return -1;
  }

  add(chunk) {
    const run = this.target, size = count => count * run.dim;
    if (!run.parts) run.parts = chunk.parts.map(p => ({ ...p, points: new Float32Array(run.frames * size(p.count)) }));
    chunk.parts.forEach((part, k) => run.parts[k].points.set(part.points, chunk.from * size(part.count)));
    run.have.fill(1, chunk.from, chunk.from + chunk.count);
    if (run === this.coming) {
      this.coming = null;
      if (!this.run || this.run.dim !== run.dim) { this.turn = run.view.slice(); this.zoom = 1; this.camera = null; }
      this.run = run;
    }
  }

  // The points of a part between frames, as long as both are here.
  at(part, frame) {
    const { dim, frames, have } = this.run, n = part.count * dim;
    const i = Math.min(Math.floor(frame), frames - 1), j = i + 1 < frames && have[i + 1] ? i + 1 : i, s = j > i ? frame - i : 0;
    const found = [];
    for (let k = 0; k < n; k += dim) {
      const point = [];
      for (let d = 0; d < dim; d++) point.push((1 - s) * part.points[i * n + k + d] + s * part.points[j * n + k + d]);
      found.push(point);
    }
    return found;
  }

  // The middle of what moves, for pictures that travel with it.
  middle(frame) {
    if (!this.run.follows) return this.run.centre;
    const points = this.run.parts.filter(p => p.kind !== "trace").flatMap(p => this.at(p, frame));
    return this.run.centre.map((_, d) => {
      const all = points.map(p => p[d]);
      return (Math.min(...all) + Math.max(...all)) / 2;
    });
  }

  // Bounds move smoothly from run to run, so that sliders do not make the picture jump.
  look(frame) {
    const { half, dim } = this.run, middle = this.middle(frame);
    const reach = Math.hypot(...half), side = Math.max(...half);
    const wanted = dim === 3 ? [reach, 0.85 * reach] : [Math.max(half[0], 0.3 * side), Math.max(half[1], 0.3 * side)];
    const scale = 0.86 * Math.min(this.width / wanted[0], this.height / wanted[1]) / 2;
    const old = this.camera, near = old && old.middle.length === middle.length ? 0.25 : 1;
    this.camera = {
      middle: this.run.follows ? middle : middle.map((x, d) => near < 1 ? old.middle[d] + near * (x - old.middle[d]) : x),
      base: near < 1 ? old.base * (scale / old.base) ** near : scale,
    };
    this.settled = near === 1 || Math.abs(Math.log(scale / this.camera.base)) < 1e-3;
    this.scale = this.camera.base * this.zoom;
  }

  see(point) {
    const p = point.map((x, d) => x - this.camera.middle[d]), s = this.scale;
    if (p.length === 2) return [this.width / 2 + s * p[0], this.height / 2 - s * p[1], 0];
    const [a, e] = this.turn, towards = Math.cos(a) * p[0] + Math.sin(a) * p[1], across = -Math.sin(a) * p[0] + Math.cos(a) * p[1];
    const up = Math.cos(e) * p[2] - Math.sin(e) * towards;
    return [this.width / 2 + s * across, this.height / 2 - s * up, Math.cos(e) * towards + Math.sin(e) * p[2]];
  }

  draw(frame, theme) {
    const sharp = window.devicePixelRatio || 1, { canvas, pen } = this;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    if (canvas.width !== Math.round(this.width * sharp) || canvas.height !== Math.round(this.height * sharp)) {
      canvas.width = Math.round(this.width * sharp);
      canvas.height = Math.round(this.height * sharp);
    }
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    if (!this.run || !this.run.parts) return;
    frame = Math.min(frame, this.run.frames - 1);
    if (!this.run.have[Math.floor(frame)]) return;
    this.look(frame);
    this.grid(theme);
    const jobs = this.run.parts.flatMap(part => part.kind === "trace" ? [this.trail(part, frame, theme)]
      : part.kind === "solid" ? this.solid(part, frame, theme) : [this.body(part, frame, theme)]);
    jobs.sort((a, b) => a[0] - b[0]).forEach(job => job[1]());
  }

  // Lines of the plane, or of the ground in space, so that the eye has something to hold on to.
  grid(theme) {
    const { middle } = this.camera, reach = 0.75 * Math.max(this.width, this.height) / this.scale, spatial = middle.length === 3;
    let step = 10 ** Math.floor(Math.log10(reach));
    step *= reach / step < 2 ? 0.5 : reach / step < 5 ? 1 : 2;
    const low = spatial ? this.run.centre[2] - this.run.half[2] : 0, n = Math.ceil(reach / step);
    const x0 = Math.round(middle[0] / step), y0 = Math.round(middle[1] / step);
    const put = (i, j) => this.see(spatial ? [(x0 + i) * step, (y0 + j) * step, low] : [(x0 + i) * step, (y0 + j) * step]);
    const size = spatial ? Math.min(n, Math.ceil(1.6 * Math.max(...this.run.half) / step)) : n;
    for (let k = -size; k <= size; k++) {
      this.stroke([put(k, -size), put(k, size)], theme.grid, 1);
      this.stroke([put(-size, k), put(size, k)], theme.grid, 1);
    }
  }

  trail(part, frame, theme) {
    const last = Math.floor(frame), first = Math.max(0, last - TRAIL), points = [];
    for (let i = last; i >= first && this.run.have[i]; i--) points.unshift(this.see(this.at(part, i)[0]));
    points.push(this.see(this.at(part, frame)[0]));
    return [-2e9, () => {
      const color = tone(part.color, theme), pieces = 12, each = Math.max(1, Math.ceil((points.length - 1) / pieces));
      for (let k = 0; k < points.length - 1; k += each) {
        this.pen.globalAlpha = 0.08 + 0.82 * ((k + each) / points.length) ** 1.6;
        this.stroke(points.slice(k, k + each + 1), color, 1.7);
      }
      this.pen.globalAlpha = 1;
    }];
  }

  body(part, frame, theme) {
    const seen = this.at(part, frame).map(p => this.see(p)), near = seen.reduce((sum, p) => sum + p[2], 0) / seen.length;
    const color = tone(part.color, theme), { pen } = this;
    if (part.kind === "track" || part.kind === "wall") return [-3e9, () => this.stroke(seen, color, 1.4)];
    if (part.kind === "line") return [near + 1e-3, () => this.stroke(seen, color, 1.5)];
    if (part.kind === "rod") return [near, () => {
      this.stroke(seen, color, 3.6);
      seen.forEach(p => this.circle(p, 2.6, color, theme.paper));
    }];
    if (part.kind === "body") return [near, () => {
      this.stroke(seen, color, 1.7, true);
      pen.globalAlpha = 0.22; pen.fillStyle = color; pen.fill(); pen.globalAlpha = 1;
    }];
    return [near + 2e-3, () => part.radius
      ? this.ball(seen[0], this.scale * part.radius, color)
      : this.circle(seen[0], 7, color, theme.paper)];
  }

  // The faces of a solid, lit from above the viewer's left shoulder.
  solid(part, frame, theme) {
    const seen = this.at(part, frame).map(p => this.see(p)), color = tone(part.color, theme);
    return part.faces.map(face => {
      const at = face.map(k => seen[k]), [p, q, r] = at, s = this.scale;
      const u = [q[0] - p[0], p[1] - q[1], s * (q[2] - p[2])], v = [r[0] - p[0], p[1] - r[1], s * (r[2] - p[2])];
      const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      const light = Math.abs(-0.35 * n[0] + 0.6 * n[1] + 0.72 * n[2]) / (Math.hypot(...n) || 1);
      const shade = mix(mix(color, "#000000", 0.38), mix(color, "#ffffff", 0.45), light);
      return [at.reduce((sum, c) => sum + c[2], 0) / at.length, () => {
        this.stroke(at, shade, 0.8, true);
        this.pen.fillStyle = shade; this.pen.fill();
      }];
    });
  }

  stroke(points, color, thick, closed = false) {
    const { pen } = this;
    pen.beginPath();
    points.forEach((p, k) => k ? pen.lineTo(p[0], p[1]) : pen.moveTo(p[0], p[1]));
    if (closed) pen.closePath();
    pen.strokeStyle = color; pen.lineWidth = thick; pen.lineJoin = pen.lineCap = "round";
    pen.stroke();
  }

  circle(at, radius, color, rim) {
    const { pen } = this;
    pen.beginPath(); pen.arc(at[0], at[1], radius, 0, 2 * Math.PI);
    pen.fillStyle = color; pen.fill(); pen.strokeStyle = rim; pen.lineWidth = 1.2; pen.stroke();
  }

  ball(at, radius, color) {
    const { pen } = this;
    pen.beginPath(); pen.arc(at[0], at[1], radius, 0, 2 * Math.PI);
    const shade = pen.createRadialGradient(at[0] - 0.35 * radius, at[1] - 0.4 * radius, 0.1 * radius, at[0], at[1], radius);
    shade.addColorStop(0, color + "66"); shade.addColorStop(1, color + "38");
    pen.fillStyle = shade; pen.fill(); pen.strokeStyle = color; pen.lineWidth = 1.6; pen.stroke();
  }

  // Dragging turns a mechanism in space, the wheel zooms, a double click forgets both.
  listen() {
    const { canvas } = this;
    let held = null;
    canvas.addEventListener("pointerdown", event => {
      if (this.run && this.run.dim === 3) { held = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); }
    });
    canvas.addEventListener("pointermove", event => {
      if (!held) return;
      this.turn[0] -= 0.008 * (event.clientX - held[0]);
      this.turn[1] = Math.max(-1.5, Math.min(1.5, this.turn[1] + 0.008 * (event.clientY - held[1])));
      held = [event.clientX, event.clientY];
    });
    ["pointerup", "pointercancel"].forEach(kind => canvas.addEventListener(kind, () => { held = null; }));
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      this.zoom = Math.max(0.1, Math.min(40, this.zoom * Math.exp(-0.0012 * event.deltaY)));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => { this.zoom = 1; if (this.run) this.turn = this.run.view.slice(); });
  }
}
