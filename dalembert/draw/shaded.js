// The parts of a film as lit surfaces, by WebGL: solids, tubes for rods and lines, balls for masses, and shadows on the ground.
function shaded(gl, data) {
  const VERTEX = `
    attribute vec3 position, normal, color;
    uniform vec3 middle, sun; uniform vec2 view, scale; uniform float depth, low, shadow;
    varying vec3 n, paint, eye;
    void main() {
      vec3 at = position;
      if (shadow > 0.0) at -= sun * (at.z - low) / sun.z;
      vec3 p = at - middle;
      float ca = cos(view.x), sa = sin(view.x), ce = cos(view.y), se = sin(view.y);
      float towards = ca * p.x + sa * p.y, near = ce * towards + se * p.z, w = 1.0 - near / depth;
      eye = vec3(ce * ca, ce * sa, se);
      n = normal; paint = color;
      gl_Position = vec4(scale.x * (-sa * p.x + ca * p.y), scale.y * (ce * p.z - se * towards), -0.9 * w * near / depth, w);
    }`;
  const FRAGMENT = `
    precision highp float;
    uniform vec3 sun; uniform float shadow, plain;
    varying vec3 n, paint, eye;
    void main() {
      if (shadow > 0.0) { gl_FragColor = vec4(0.1, 0.12, 0.16, 0.3); return; }
      if (plain > 0.0) { gl_FragColor = vec4(paint, 1.0); return; }
      vec3 m = normalize(n), e = normalize(eye);
      if (dot(m, e) < 0.0) m = -m;
      float light = 0.5 + 0.55 * max(dot(m, sun), 0.0) + 0.14 * dot(m, e);
      float shine = 0.25 * pow(max(dot(m, normalize(sun + e)), 0.0), 40.0);
      gl_FragColor = vec4(paint * light + shine, 1.0);
    }`;
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text); gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  gl.useProgram(program);
  const buffer = gl.createBuffer(), place = name => gl.getUniformLocation(program, name);
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  ["position", "normal", "color"].forEach((name, k) => {
    const slot = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(slot); gl.vertexAttribPointer(slot, 3, gl.FLOAT, false, 36, 12 * k);
  });
  gl.enable(gl.DEPTH_TEST); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);

  const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]], plus = (a, b, s) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2], unit = a => { const l = Math.hypot(...a) || 1; return [a[0] / l, a[1] / l, a[2] / l]; };
  const rgb = text => [1, 3, 5].map(k => parseInt(text.slice(k, k + 2), 16) / 255);
  const size = Math.max(...data.half), sun = unit([0.45, -0.65, 1.1]);
  let list = [];
  const vertex = (p, n, c) => list.push(p[0], p[1], p[2], n[0], n[1], n[2], c[0], c[1], c[2]);
  const triangle = (p, q, r, l, m, n, c) => { vertex(p, l, c); vertex(q, m, c); vertex(r, n, c); };

  // Normals of corners are means over the faces around that bend by less than 40 degrees.
  function polygons(points, faces, dark, color) {
    const shade = color.map(x => 0.62 * x), flat = faces.map(f => unit(cross(minus(points[f[1]], points[f[0]]), minus(points[f[2]], points[f[0]]))));
    const around = points.map(() => []);
    faces.forEach((f, k) => f.forEach(i => around[i].push(flat[k])));
    faces.forEach((f, k) => {
      const tone = dark.has(k) ? shade : color;
      const smooth = f.map(i => around[i].reduce((sum, n) => dot(n, flat[k]) > 0.77 ? plus(sum, n, 1) : sum, [0, 0, 0]));
      for (let j = 2; j < f.length; j++) triangle(points[f[0]], points[f[j - 1]], points[f[j]], smooth[0], smooth[j - 1], smooth[j], tone);
    });
  }
  function tube(points, radius, color, sides) {
    for (let k = 1; k < points.length; k++) {
      const way = minus(points[k], points[k - 1]);
      if (dot(way, way) < 1e-18 * size * size) continue;
      const a = unit(way), x = unit(cross(a, Math.abs(a[2]) < 0.8 ? [0, 0, 1] : [1, 0, 0])), y = cross(a, x);
      const ring = [];
      for (let s = 0; s <= sides; s++) { const t = 2 * Math.PI * s / sides; ring.push(plus(plus([0, 0, 0], x, Math.cos(t)), y, Math.sin(t))); }
      for (let s = 0; s < sides; s++) {
        const [m, n] = [ring[s], ring[s + 1]], p = plus(points[k - 1], m, radius), q = plus(points[k - 1], n, radius), r = plus(points[k], n, radius), t = plus(points[k], m, radius);
        triangle(p, q, r, m, n, n, color); triangle(p, r, t, m, n, m, color);
      }
    }
  }
  const globe = [];
  for (let i = 0; i < 10; i++) for (let j = 0; j < 16; j++) {
    const at = (u, v) => { const a = Math.PI * u / 10, b = 2 * Math.PI * v / 16; return [Math.sin(a) * Math.cos(b), Math.sin(a) * Math.sin(b), Math.cos(a)]; };
    globe.push([at(i, j), at(i + 1, j), at(i + 1, j + 1)], [at(i, j), at(i + 1, j + 1), at(i, j + 1)]);
  }
  const ball = (c, radius, color) => globe.forEach(([p, q, r]) => triangle(plus(c, p, radius), plus(c, q, radius), plus(c, r, radius), p, q, r, color));

  function build(part, points) {
    const color = rgb(part.color);
    if (part.kind === "solid") polygons(points, part.faces, part.darkFaces, color);
    else if (part.kind === "body") { polygons(points, [points.map((_, k) => k)], new Set(), color); tube([...points, points[0]], 0.006 * size, color.map(x => 0.6 * x), 6); }
    else if (part.kind === "rod") { tube(points, 0.014 * size, color, 12); points.forEach(p => ball(p, 0.018 * size, color)); }
    else if (part.kind === "mass") ball(points[0], part.radius || 0.028 * size, color);
    else if (part.kind === "line") tube(points, 0.006 * size, color, 8);
  }
  for (const part of data.parts) if (part.kind === "solid") part.darkFaces = new Set(part.dark);
  const low = data.low - 0.03 * size;

  function paint(first, count, kind) { if (count > first) gl.drawArrays(kind, first, count - first); }
  function grid(middle, reach) {
    const step = 10 ** Math.floor(Math.log10(reach / 2)), c = [0.86, 0.88, 0.9], up = [0, 0, 1], n = Math.ceil(2.5 * reach / step);
    const x0 = Math.round(middle[0] / step), y0 = Math.round(middle[1] / step), put = (i, j) => [(x0 + i) * step, (y0 + j) * step, low];
    for (let k = -n; k <= n; k++) { vertex(put(k, -n), up, c); vertex(put(k, n), up, c); vertex(put(-n, k), up, c); vertex(put(n, k), up, c); }
  }
  return (scene, paths, middle, view, scale, width, height, zoom) => {
    list = [];
    grid(middle, 2 * size / Math.min(zoom, 1));
    const lines = list.length / 9;
    scene.forEach(([part, points]) => { if (part.kind !== "track") build(part, points); });
    const solids = list.length / 9;
    scene.forEach(([part, points]) => { if (part.kind === "track") tube(points, 0.004 * size, rgb(part.color), 6); });
    paths.forEach(([color, points]) => tube(points, 0.005 * size, rgb(color), 5));
    const all = list.length / 9;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clearColor(0.975, 0.98, 0.985, 1); gl.clearStencil(0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(list), gl.DYNAMIC_DRAW);
    gl.uniform3fv(place("middle"), middle); gl.uniform3fv(place("sun"), sun); gl.uniform2fv(place("view"), view);
    gl.uniform2f(place("scale"), 2 * scale / width, 2 * scale / height);
    gl.uniform1f(place("depth"), 9 * size); gl.uniform1f(place("low"), low);
    gl.uniform1f(place("shadow"), 0); gl.uniform1f(place("plain"), 1);
    paint(0, lines, gl.LINES);
    // Shadows: each point of the ground is darkened once, whatever hides the sun; only from above.
    if (view[1] > 0) {
      gl.uniform1f(place("shadow"), 1);
      gl.enable(gl.BLEND); gl.enable(gl.STENCIL_TEST); gl.disable(gl.DEPTH_TEST);
      gl.stencilFunc(gl.EQUAL, 0, 255); gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      paint(lines, solids, gl.TRIANGLES);
      gl.disable(gl.BLEND); gl.disable(gl.STENCIL_TEST); gl.enable(gl.DEPTH_TEST);
    }
    gl.uniform1f(place("shadow"), 0); gl.uniform1f(place("plain"), 0);
    paint(lines, all, gl.TRIANGLES);
  };
}
