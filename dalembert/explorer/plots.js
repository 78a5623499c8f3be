// Curves against time, and a cloud of points, on canvases with axes.

const SUPER = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

// A number in few characters: 0.25, 1200, 3·10⁻⁷.
function shown(x, digits = 3) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e5) return String(+x.toPrecision(digits)).replace("-", "−");
  const [mantissa, exponent] = x.toExponential(Math.max(0, digits - 2)).split("e");
  const power = "10" + [...String(+exponent)].map(c => SUPER[c]).join("");
  return (+mantissa === 1 ? power : `${+mantissa}·${power}`).replace("-", "−");
}

// About `count` round numbers from low to high.
function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
  const found = [];
  for (let x = Math.ceil(low / step); x * step <= high + 1e-9 * step; x++) found.push(x * step);
  return found;
}

class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.box = { left: 56, right: 12, top: 10, bottom: 24 };
  }

  begin(theme) {
    const sharp = window.devicePixelRatio || 1, { canvas, pen } = this;
    this.width = canvas.clientWidth; this.height = canvas.clientHeight;
    canvas.width = Math.round(this.width * sharp); canvas.height = Math.round(this.height * sharp);
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = "11px system-ui, sans-serif";
    this.theme = theme;
  }

  // The frame, with numbers; logarithmic axes have powers of ten.
  axes(x, y, log) {
    const { pen, box, width, height, theme } = this;
    this.span = { x, y };
    pen.lineWidth = 1; pen.fillStyle = theme.faint; pen.strokeStyle = theme.grid;
    const line = (x0, y0, x1, y1) => { pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke(); };
    pen.textAlign = "right"; pen.textBaseline = "middle";
    const levels = log ? ticks(y[0], y[1], 3).filter(Number.isInteger) : ticks(y[0], y[1], 3);
    for (const v of levels) {
      const at = this.down(v);
      line(box.left, at, width - box.right, at);
      pen.fillText(log ? shown(10 ** v, 2) : shown(v), box.left - 6, at);
    }
    pen.textAlign = "center"; pen.textBaseline = "top";
    for (const v of ticks(x[0], x[1], Math.max(2, Math.floor(width / 90)))) pen.fillText(shown(v), this.across(v), height - box.bottom + 7);
  }

  across(x) { return this.box.left + (x - this.span.x[0]) / (this.span.x[1] - this.span.x[0]) * (this.width - this.box.left - this.box.right); }
  down(y) { return this.height - this.box.bottom - (y - this.span.y[0]) / (this.span.y[1] - this.span.y[0]) * (this.height - this.box.top - this.box.bottom); }

  // Curves are {t, low, high, color, dash}: bands between the extremes of each stretch of time.
  curves(list, log, theme, now) {
    this.begin(theme);
    if (!list.length) return;
    const value = log ? v => Math.log10(v) : v => v;
    let x = [Infinity, -Infinity], y = [Infinity, -Infinity];
    for (const curve of list) {
      x = [Math.min(x[0], curve.t[0]), Math.max(x[1], curve.t.at(-1))];
      for (const v of curve.low) y[0] = Math.min(y[0], value(v));
      for (const v of curve.high) y[1] = Math.max(y[1], value(v));
    }
    if (log) y = [Math.min(-17, Math.floor(y[0])), Math.max(-13, Math.ceil(y[1] + 0.3))];
    const room = log ? 0 : 0.07 * (y[1] - y[0]) || 1e-16 + 0.07 * Math.abs(y[0]);
    this.axes([x[0], x[1] > x[0] ? x[1] : x[0] + 1], [y[0] - room, y[1] + room], log);
    const { pen } = this;
    for (const curve of list) {
      const put = (k, v) => [this.across(curve.t[k]), this.down(value(v))];
      pen.beginPath();
      curve.t.forEach((_, k) => pen.lineTo(...put(k, curve.high[k])));
      for (let k = curve.t.length - 1; k >= 0; k--) pen.lineTo(...put(k, curve.low[k]));
      pen.globalAlpha = 0.3; pen.fillStyle = curve.color; pen.fill(); pen.globalAlpha = 1;
      pen.beginPath();
      curve.t.forEach((_, k) => pen.lineTo(...put(k, curve.high[k])));
      pen.strokeStyle = curve.color; pen.lineWidth = 1.4; pen.lineJoin = "round"; pen.setLineDash(curve.dash || []);
      pen.stroke(); pen.setLineDash([]);
    }
    if (now === null) return;
    const at = this.across(now);
    pen.strokeStyle = theme.ink; pen.globalAlpha = 0.45; pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(at, this.box.top); pen.lineTo(at, this.height - this.box.bottom); pen.stroke();
    pen.globalAlpha = 1;
  }

  // Clouds are {points, color}.
  cloud(list, theme) {
    this.begin(theme);
    const all = list.flatMap(c => c.points);
    if (!all.length) return;
    const span = k => {
      let low = Infinity, high = -Infinity;
      for (const p of all) { low = Math.min(low, p[k]); high = Math.max(high, p[k]); }
      const room = 0.06 * (high - low) || 0.5;
      return [low - room, high + room];
    };
    this.axes(span(0), span(1), false);
    const { pen } = this;
    for (const { points, color } of list) {
      pen.fillStyle = color;
      pen.globalAlpha = points.length > 2000 ? 0.6 : 0.9;
      const size = points.length > 2000 ? 1.4 : points.length > 300 ? 2 : 3;
      for (const p of points) pen.fillRect(this.across(p[0]) - size / 2, this.down(p[1]) - size / 2, size, size);
    }
    pen.globalAlpha = 1;
  }

  // The time under a pointer.
  time(event) {
    if (!this.span) return null;
    const { x } = this.span, inner = this.width - this.box.left - this.box.right;
    return x[0] + (event.offsetX - this.box.left) / inner * (x[1] - x[0]);
  }
}
