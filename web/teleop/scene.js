// The arm in four views, all by one painter: capsules from far to near, with the trail, the goal and the window.
'use strict';

// A view turns a point of the base frame (m) into right, up and depth (m, larger is nearer).
const PROJECTIONS = {
  top: (p) => [p[0], p[1], p[2]],
  front: (p) => [p[0], p[2], -p[1]],
  side: (p) => [p[1], p[2], p[0]],
};

class Scene {
  constructor(canvas, name) {
    this.canvas = canvas;
    this.name = name;
    this.turn = 0.9;
    this.tilt = 0.45;
    this.zoom = 1;
    if (name === 'space') this.listen();
  }

  listen() {
    let last = null;
    this.canvas.addEventListener('pointerdown', (event) => { last = event; this.canvas.setPointerCapture(event.pointerId); });
    this.canvas.addEventListener('pointermove', (event) => {
      if (!last || !(event.buttons & 1)) return;
      this.turn -= (event.clientX - last.clientX) * 0.008;
      this.tilt = Math.min(1.5, Math.max(-0.4, this.tilt + (event.clientY - last.clientY) * 0.006));
      last = event;
    });
    this.canvas.addEventListener('pointerup', () => { last = null; });
    this.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom = Math.min(4, Math.max(0.5, this.zoom * Math.exp(-event.deltaY * 0.001)));
    }, { passive: false });
  }

  projected(p) {
    if (this.name !== 'space') return PROJECTIONS[this.name](p);
    const [x, y, z] = [p[0] - 0.2, p[1] - 0.1, p[2] - 0.05];
    const c = Math.cos(this.turn), s = Math.sin(this.turn);
    const right = x * c + y * s, away = -x * s + y * c;
    const ct = Math.cos(this.tilt), st = Math.sin(this.tilt);
    return [right, z * ct + away * st, z * st - away * ct];
  }

  // Middle of the picture and half of its extent, m.
  frame(window) {
    if (this.name === 'space') return { right: 0, up: 0, half: 0.5 / this.zoom };
    const middle = window[0].map((low, axis) => (low + window[1][axis]) / 2);
    const [right, up] = PROJECTIONS[this.name](middle);
    return { right, up, half: 0.25 };
  }

  // Scale in pixels per metre, and the picture of a point.
  camera(width, height, window) {
    const { right, up, half } = this.frame(window);
    const scale = Math.min(width, height) / 2 / half;
    return { scale, at: (p) => { const [r, u, d] = this.projected(p); return [width / 2 + (r - right) * scale, height / 2 - (u - up) * scale, d]; } };
  }

  draw(state, trail, window, alarmed) {
    const { context: c, width, height } = prepared(this.canvas);
    const { scale, at } = this.camera(width, height, window);
    this.scale = scale;
    this.grid(c, at, window);
    if (this.name === 'space') this.shadow(c, state, at, scale);
    const parts = state.body
      .map(([from, to, radius], index) => ({ from: at(from), to: at(to), radius: radius * scale, index }))
      .sort((a, b) => a.from[2] + a.to[2] - b.from[2] - b.to[2]);
    c.globalAlpha = this.name === 'space' ? 1 : 0.55;
    for (const part of parts) this.capsule(c, part);
    c.globalAlpha = 1;
    this.line(c, at, trail.map((point) => point.slice(3)), colour('--c2'), 1.5, [4, 4]);
    this.line(c, at, trail.map((point) => point.slice(0, 3)), colour('--c1'), 2.2, []);
    const [gx, gy] = at(state.goal), [px, py] = at(state.position);
    c.strokeStyle = colour('--c2'); c.lineWidth = 2;
    c.beginPath(); c.arc(gx, gy, 8, 0, 7); c.moveTo(gx - 12, gy); c.lineTo(gx + 12, gy); c.moveTo(gx, gy - 12); c.lineTo(gx, gy + 12); c.stroke();
    c.fillStyle = colour('--c1');
    c.beginPath(); c.arc(px, py, 5, 0, 7); c.fill();
    if (alarmed) { c.strokeStyle = colour('--bad'); c.lineWidth = 8; c.strokeRect(0, 0, width, height); }
  }

  // The floor of the window, every 50 mm, and its box.
  grid(c, at, [low, high]) {
    c.lineWidth = 1;
    c.strokeStyle = colour('--grid');
    const segment = (a, b) => { const [x0, y0] = at(a), [x1, y1] = at(b); c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1); c.stroke(); };
    const range = (from, to) => Array.from({ length: Math.floor((to - from) / 0.05 + 1e-9) + 1 }, (_, index) => from + 0.05 * index);
    if (this.name === 'front') for (const z of range(low[2], high[2])) segment([low[0], low[1], z], [high[0], low[1], z]);
    if (this.name === 'side') for (const z of range(low[2], high[2])) segment([low[0], low[1], z], [low[0], high[1], z]);
    for (const x of range(low[0], high[0])) segment([x, low[1], low[2]], this.name === 'front' ? [x, low[1], high[2]] : [x, high[1], low[2]]);
    for (const y of range(low[1], high[1])) segment([low[0], y, low[2]], this.name === 'side' ? [low[0], y, high[2]] : [high[0], y, low[2]]);
    c.strokeStyle = colour('--c0');
    const corner = (bits) => [0, 1, 2].map((axis) => (bits >> axis & 1 ? high : low)[axis]);
    for (let bits = 0; bits < 8; bits += 1) for (let axis = 0; axis < 3; axis += 1) if (!(bits >> axis & 1)) segment(corner(bits), corner(bits | 1 << axis));
  }

  shadow(c, state, at, scale) {
    c.strokeStyle = colour('--ink'); c.globalAlpha = 0.07; c.lineCap = 'round';
    for (const [from, to, radius] of state.body) {
      const [x0, y0] = at([from[0], from[1], -0.3]), [x1, y1] = at([to[0], to[1], -0.3]);
      c.lineWidth = 2 * radius * scale; c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1); c.stroke();
    }
    c.globalAlpha = 1;
  }

  capsule(c, { from, to, radius, index }) {
    const stroke = (style, width) => { c.strokeStyle = style; c.lineWidth = width; c.beginPath(); c.moveTo(from[0], from[1]); c.lineTo(to[0] + 0.01, to[1]); c.stroke(); };
    c.lineCap = 'round';
    stroke(colour('--metal-dark'), 2 * radius);
    stroke(colour('--metal'), 2 * radius - 3);
    // A light from above left.
    c.save(); c.translate(-radius * 0.25, -radius * 0.25); c.globalAlpha *= 0.35; stroke('#ffffff', radius * 0.7); c.restore();
    if (index > 0) {
      c.fillStyle = colour('--joint');
      c.beginPath(); c.arc(from[0], from[1], radius * 0.62, 0, 7); c.fill();
    }
  }

  line(c, at, points, style, width, dash) {
    c.strokeStyle = style; c.lineWidth = width; c.setLineDash(dash); c.lineCap = 'butt'; c.lineJoin = 'round';
    c.beginPath();
    points.forEach((point, index) => { const [x, y] = at(point); if (index) c.lineTo(x, y); else c.moveTo(x, y); });
    c.stroke(); c.setLineDash([]);
  }
}
