// Space: transforms, poses, paths, scans, points and maps, seen without perspective, so that a map is drawn by one
// affine transform and points by a few multiplications each.
'use strict';

const TRAIL_MAX = 600;
const FRAMES_DEPTH_MAX = 32;

// Rotation by a quaternion and translation, as a 3 × 4 matrix by rows.
function matrix({ x, y, z }, q) {
  const n = q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w;
  // No rotation is what an empty quaternion stands for.
  const s = n > 1e-12 ? 2 / n : 0;
  return [
    1 - s * (q.y * q.y + q.z * q.z), s * (q.x * q.y - q.z * q.w), s * (q.x * q.z + q.y * q.w), x,
    s * (q.x * q.y + q.z * q.w), 1 - s * (q.x * q.x + q.z * q.z), s * (q.y * q.z - q.x * q.w), y,
    s * (q.x * q.z - q.y * q.w), s * (q.y * q.z + q.x * q.w), 1 - s * (q.x * q.x + q.y * q.y), z,
  ];
}
const IDENTITY = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0];

function times(a, b) {
  const out = new Array(12);
  for (let row = 0; row < 3; row += 1) {
    for (let column = 0; column < 4; column += 1) {
      let sum = column === 3 ? a[row * 4 + 3] : 0;
      for (let k = 0; k < 3; k += 1) sum += a[row * 4 + k] * b[k * 4 + column];
      out[row * 4 + column] = sum;
    }
  }
  return out;
}

// Of a rotation and a translation.
function inverse(m) {
  const r = [m[0], m[4], m[8], m[1], m[5], m[9], m[2], m[6], m[10]];
  const t = (row) => -(r[row * 3] * m[3] + r[row * 3 + 1] * m[7] + r[row * 3 + 2] * m[11]);
  return [r[0], r[1], r[2], t(0), r[3], r[4], r[5], t(1), r[6], r[7], r[8], t(2)];
}
const apply = (m, p) => [m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3], m[4] * p[0] + m[5] * p[1] + m[6] * p[2] + m[7], m[8] * p[0] + m[9] * p[1] + m[10] * p[2] + m[11]];

const sceneView = {
  chosen: new Set(),
  // Newest of each topic: {kind, frame, …}.
  things: new Map(),
  // Child frame: {parent, matrix}.
  frames: new Map(),
  trails: new Map(),
  camera: { turn: -0.9, tilt: 0.62, scale: 40, x: 0, y: 0, z: 0 },
  fitted: false,

  start() {
    const canvas = element('space');
    // Pointers that touch, by number; two of them move and zoom.
    const held = new Map();
    const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
    canvas.addEventListener('pointerdown', (event) => { held.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, (event) => held.delete(event.pointerId));
    canvas.addEventListener('pointermove', (event) => {
      const last = held.get(event.pointerId);
      if (!last) return;
      const dx = event.clientX - last.clientX, dy = event.clientY - last.clientY;
      const before = held.size === 2 ? spread() : 0;
      held.set(event.pointerId, event);
      if (held.size === 2) { this.pan(dx / 2, dy / 2); if (before > 10) this.zoom(spread() / before); return; }
      if (event.shiftKey || event.buttons & 6) this.pan(dx, dy); else this.orbit(dx * 0.008, dy * 0.006);
    });
    canvas.addEventListener('wheel', (event) => { event.preventDefault(); this.zoom(Math.exp(-event.deltaY * 0.0012)); }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const turn = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, -0.08], ArrowDown: [0, 0.08] }[event.key];
      if (turn) { event.preventDefault(); event.stopPropagation(); this.orbit(...turn); }
      if (event.key === '+') this.zoom(1.2);
      if (event.key === '-') this.zoom(1 / 1.2);
    });
    element('scene-top').addEventListener('click', () => { Object.assign(this.camera, { turn: -Math.PI / 2, tilt: Math.PI / 2 }); this.paint(); });
    element('scene-fit').addEventListener('click', () => { this.fit(); this.paint(); });
    element('scene-frame').addEventListener('change', () => { this.trails.clear(); this.fit(); this.paint(); });
  },

  orbit(turn, tilt) { this.camera.turn += turn; this.camera.tilt = Math.min(Math.PI / 2, Math.max(-0.2, this.camera.tilt + tilt)); this.paint(); },
  zoom(by) { this.camera.scale = Math.min(5000, Math.max(0.01, this.camera.scale * by)); this.paint(); },

  // Moves what is looked at along the screen.
  pan(dx, dy) {
    const { turn, tilt, scale } = this.camera, right = [-Math.sin(turn), Math.cos(turn)], sink = Math.max(0.2, Math.sin(tilt));
    this.camera.x -= dx / scale * right[0] - dy / scale / sink * Math.cos(turn) * -1;
    this.camera.y -= dx / scale * right[1] - dy / scale / sink * Math.sin(turn) * -1;
    this.paint();
  },

  topics() { return catalog.topics.filter((topic) => ['cloud', 'grid', 'scene'].includes(topic.kind)); },

  draw() {
    if (element('view-scene').hidden) return;
    const topics = this.topics(), key = JSON.stringify([topics.map((topic) => topic.name), [...this.chosen]]);
    if (!this.touched && !this.chosen.size && topics.length) { topics.slice(0, 8).forEach((topic) => this.chosen.add(topic.name)); look(); }
    if (key !== this.key) {
      this.key = key;
      drawChecks(element('scene-topics'), topics, this.chosen, () => { this.touched = true; });
      element('scene-topics').querySelectorAll('label').forEach((label, index) => {
        const age = label.appendChild(document.createElement('span'));
        age.className = 'figure';
        age.dataset.topic = topics[index].name;
      });
      if (!topics.length) element('scene-topics').replaceChildren(note('No topic with poses, transforms, paths, scans, points or maps is published.'));
      for (const name of [...this.things.keys()]) if (!this.chosen.has(name)) { this.things.delete(name); this.trails.delete(name); }
    }
    this.paint();
  },

  handleScene(message) {
    if (!timeline.isFollowing() && timeline.mode === 'live') return;
    const tree = message.tree;
    if (tree === undefined) { element('scene-note').textContent = `${message.topic}: ${message.why}`; return; }
    const name = message.type.split('/').pop();
    if (name === 'TFMessage') tree.transforms.forEach((one) => this.transform(one));
    else if (name === 'TransformStamped') this.transform(tree);
    else this.things.set(message.topic, { kind: name, tree, frame: tree.header.frame_id, message });
    if (name === 'Odometry' && tree.child_frame_id) this.frames.get(tree.child_frame_id) || this.transform({ header: tree.header, child_frame_id: tree.child_frame_id, transform: { translation: tree.pose.pose.position, rotation: tree.pose.pose.orientation }, odometry: true });
    else if (name === 'Odometry' && this.frames.get(tree.child_frame_id)?.odometry) this.transform({ header: tree.header, child_frame_id: tree.child_frame_id, transform: { translation: tree.pose.pose.position, rotation: tree.pose.pose.orientation }, odometry: true });
    this.came(message);
  },

  transform(one) {
    if (this.frames.size > 512 && !this.frames.has(one.child_frame_id)) return;
    this.frames.set(one.child_frame_id, { parent: one.header.frame_id, matrix: matrix(one.transform.translation, one.transform.rotation), odometry: one.odometry });
  },

  handlePoints(head, body) {
    if (head.why) { element('scene-note').textContent = `${head.topic}: ${head.why}`; return; }
    if (head.t === 'cloud') {
      const places = new Float32Array(head.points * 3), colours = new Uint8Array(head.points * 4);
      for (let index = 0; index < head.points; index += 1) {
        for (let axis = 0; axis < 3; axis += 1) places[index * 3 + axis] = body.getFloat32(index * 16 + axis * 4, true);
        for (let part = 0; part < 4; part += 1) colours[index * 4 + part] = body.getUint8(index * 16 + 12 + part);
      }
      this.things.set(head.topic, { kind: 'cloud', frame: head.frame, places, colours, message: head });
    } else {
      const picture = document.createElement('canvas');
      [picture.width, picture.height] = [head.columns, head.rows];
      const cells = new Int8Array(body.buffer, body.byteOffset, head.columns * head.rows);
      const thing = { kind: 'grid', frame: head.frame, picture, cells, resolution: head.resolution, origin: head.origin, message: head };
      this.paintCells(thing);
      this.things.set(head.topic, thing);
    }
    this.came(head);
  },

  // Free cells are near the colour of the page, occupied ones far from it, unknown ones clear.
  paintCells({ picture, cells }) {
    const pixels = new ImageData(picture.width, picture.height), [free, step] = isDark() ? [48, 1.7] : [235, -2];
    cells.forEach((cell, index) => {
      const grey = cell < 0 ? 128 : free + cell * step;
      pixels.data.set([grey, grey, grey, cell < 0 ? 60 : 255], index * 4);
    });
    picture.getContext('2d').putImageData(pixels, 0, 0);
  },

  came(message) {
    const age = [...element('scene-topics').querySelectorAll('.figure')].find((one) => one.dataset.topic === message.topic);
    if (age) age.textContent = ageText(message.age_ms, message.bound_ms);
    this.drawFrames();
    if (!this.fitted && this.things.size) { this.fitted = true; this.fit(); }
    this.dirty = true;
  },

  drawFrames() {
    const names = new Set();
    for (const [child, { parent }] of this.frames) { names.add(parent); names.add(child); }
    for (const thing of this.things.values()) names.add(thing.frame);
    const choose = element('scene-frame'), sorted = [...names].sort();
    if ([...choose.options].map((option) => option.value).join() === sorted.join()) return;
    const before = choose.value;
    choose.replaceChildren(...sorted.map((name) => new Option(name || '(none)', name)));
    const roots = sorted.filter((name) => !this.frames.has(name));
    // A choice is kept; without one the world is the root that most is known of.
    if (this.touchedFrame && sorted.includes(before)) choose.value = before;
    else choose.value = ['map', 'world', 'odom'].find((name) => sorted.includes(name) && !this.frames.has(name)) || roots[0] || '';
    choose.onchange = () => { this.touchedFrame = true; };
  },

  // The transform from a frame into its root, and the root.
  toRoot(frame) {
    let m = IDENTITY, name = frame;
    for (let depth = 0; depth < FRAMES_DEPTH_MAX; depth += 1) {
      const up = this.frames.get(name);
      if (!up) break;
      m = times(up.matrix, m);
      name = up.parent;
    }
    return { m, root: name };
  },

  // From a frame into the one that is shown; null if they hang together by no transform.
  toShown(frame) {
    const shown = this.toRoot(element('scene-frame').value), from = this.toRoot(frame);
    return shown.root === from.root ? times(inverse(shown.m), from.m) : null;
  },

  points(thing) {
    if (thing.kind === 'cloud') return thing.places;
    const pose = (one) => [one.position.x, one.position.y, one.position.z];
    if (thing.kind === 'PoseStamped') return pose(thing.tree.pose);
    if (['Odometry', 'PoseWithCovarianceStamped'].includes(thing.kind)) return pose(thing.tree.pose.pose);
    if (thing.kind === 'PointStamped') return [thing.tree.point.x, thing.tree.point.y, thing.tree.point.z];
    if (thing.kind === 'Path') return thing.tree.poses.flatMap((one) => pose(one.pose));
    if (thing.kind === 'PoseArray') return thing.tree.poses.flatMap(pose);
    if (thing.kind === 'LaserScan') {
      const { ranges, angle_min, angle_increment, range_min, range_max } = thing.tree;
      return ranges.flatMap((range, index) => (typeof range === 'number' && range >= range_min && range <= range_max ? [range * Math.cos(angle_min + index * angle_increment), range * Math.sin(angle_min + index * angle_increment), 0] : []));
    }
    if (thing.kind === 'grid') {
      const m = this.gridMatrix(thing), { width, height } = thing.picture;
      return [[0, 0, 0], [width, 0, 0], [0, height, 0], [width, height, 0]].flatMap((corner) => apply(m, corner));
    }
    return [];
  },

  gridMatrix({ origin, resolution: r }) {
    const m = matrix({ x: origin[0], y: origin[1], z: origin[2] }, { x: origin[3], y: origin[4], z: origin[5], w: origin[6] });
    return [m[0] * r, m[1] * r, m[2], m[3], m[4] * r, m[5] * r, m[6], m[7], m[8] * r, m[9] * r, m[10], m[11]];
  },

  fit() {
    let low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (const thing of this.things.values()) {
      const m = this.toShown(thing.frame), points = this.points(thing);
      if (!m) continue;
      for (let index = 0; index + 2 < points.length; index += 3) {
        const p = apply(m, [points[index], points[index + 1], points[index + 2]]);
        low = low.map((value, axis) => Math.min(value, p[axis])); high = high.map((value, axis) => Math.max(value, p[axis]));
      }
    }
    if (!(low[0] <= high[0])) return;
    const canvas = element('space'), size = Math.max(2, Math.hypot(...high.map((value, axis) => value - low[axis])));
    [this.camera.x, this.camera.y, this.camera.z] = low.map((value, axis) => (value + high[axis]) / 2);
    this.camera.scale = Math.min(canvas.clientWidth || 600, (canvas.clientHeight || 400) * 1.5) / size * 0.8;
  },

  // The camera as a 2 × 4 matrix: right and down on the screen, CSS pixels.
  projection(width, height) {
    const { turn, tilt, scale, x, y, z } = this.camera, s = Math.sin(turn), c = Math.cos(turn), st = Math.sin(tilt), ct = Math.cos(tilt);
    const right = [-s * scale, c * scale, 0], down = [c * st * scale, s * st * scale, -ct * scale];
    return [...right, width / 2 - right[0] * x - right[1] * y, ...down, height / 2 - down[0] * x - down[1] * y - down[2] * z];
  },

  paint() {
    const canvas = element('space');
    if (!canvas.clientWidth) return;
    const { context: c, width, height } = prepared(canvas);
    const P = this.projection(width, height);
    const at = (p) => [P[0] * p[0] + P[1] * p[1] + P[2] * p[2] + P[3], P[4] * p[0] + P[5] * p[1] + P[6] * p[2] + P[7]];
    let unplaced = 0, drawn = 0;
    this.names = [];
    const placed = [...this.things.entries()].map(([name, thing], index) => ({ name, thing, m: this.toShown(thing.frame), style: palette.curves[index % palette.curves.length] }));
    // Named things come before clouds.
    placed.sort((a, b) => (b.thing.kind === 'cloud') - (a.thing.kind === 'cloud'));
    for (const { thing, m } of placed) if (thing.kind === 'grid' && m) this.paintGrid(c, at, times(m, this.gridMatrix(thing)), thing);
    this.paintFloor(c, at, width, height);
    for (const one of placed) {
      if (one.m) drawn += this.paintThing(c, at, one); else unplaced += 1;
    }
    for (const frame of this.frames.keys()) { const m = this.toShown(frame); if (m) this.axes(c, at, m, frame); }
    canvas.dataset.points = String(drawn);
    const clouds = placed.filter(({ thing }) => thing.kind === 'cloud').map(({ name, thing }) => `${name}: ${thing.message.points} of ${thing.message.of} points`).join(', ');
    element('scene-note').textContent = [clouds, unplaced ? `${unplaced} not shown: no transform joins their frames with this one` : ''].filter(Boolean).join('; ');
    this.dirty = false;
  },

  // Squares of 1, 2, 5, 10 … m on the floor.
  paintFloor(c, at, width, height) {
    const least = 40 / this.camera.scale, power = 10 ** Math.floor(Math.log10(least)), reach = 24;
    const step = Number((power * [1, 2, 5, 10].find((factor) => factor * power >= least)).toPrecision(3));
    const cx = Math.round(this.camera.x / step), cy = Math.round(this.camera.y / step);
    c.lineWidth = 1;
    c.strokeStyle = palette.grid;
    c.beginPath();
    for (let index = -reach; index <= reach; index += 1) {
      for (const [a, b] of [[[cx + index, cy - reach], [cx + index, cy + reach]], [[cx - reach, cy + index], [cx + reach, cy + index]]]) {
        c.moveTo(...at([a[0] * step, a[1] * step, 0])); c.lineTo(...at([b[0] * step, b[1] * step, 0]));
      }
    }
    c.stroke();
    c.fillStyle = palette.muted; c.font = '11px system-ui, sans-serif'; c.textAlign = 'left';
    c.fillText(`squares of ${step} m`, 10, height - 10);
  },

  paintGrid(c, at, m, { picture }) {
    const o = at(apply(m, [0, 0, 0])), u = at(apply(m, [1, 0, 0])), v = at(apply(m, [0, 1, 0]));
    c.save();
    c.transform(u[0] - o[0], u[1] - o[1], v[0] - o[0], v[1] - o[1], o[0], o[1]);
    c.imageSmoothingEnabled = false;
    c.drawImage(picture, 0, 0);
    c.restore();
  },

  axes(c, at, m, name) {
    const size = 26 / this.camera.scale, o = at([m[3], m[7], m[11]]);
    palette.axes.forEach((style, axis) => {
      c.strokeStyle = style; c.lineWidth = 2;
      c.beginPath(); c.moveTo(...o); c.lineTo(...at([m[3] + m[axis] * size, m[7] + m[4 + axis] * size, m[11] + m[8 + axis] * size])); c.stroke();
    });
    c.fillStyle = palette.ink; c.font = '11px system-ui, sans-serif'; c.textAlign = 'left';
    // Names of frames in one place stand below each other.
    const width = c.measureText(name).width;
    let y = o[1] + 12;
    while (name && this.names.some((other) => Math.abs(other.y - y) < 12 && o[0] + 6 < other.x + other.width && other.x < o[0] + 6 + width)) y += 12;
    this.names.push({ x: o[0] + 6, y, width });
    c.strokeStyle = palette.paper; c.lineWidth = 3;
    c.strokeText(name, o[0] + 6, y); c.fillText(name, o[0] + 6, y);
  },

  // Returns the number of points.
  paintThing(c, at, { name, thing, m, style }) {
    const points = this.points(thing), count = Math.floor(points.length / 3);
    const place = (index) => apply(m, [points[index * 3], points[index * 3 + 1], points[index * 3 + 2]]);
    if (thing.kind === 'grid') return count;
    if (thing.kind === 'cloud' || thing.kind === 'LaserScan') {
      // Without a colour of its own a point is coloured by its height.
      let low = Infinity, high = -Infinity;
      for (let index = 0; index < count; index += 1) { low = Math.min(low, points[index * 3 + 2]); high = Math.max(high, points[index * 3 + 2]); }
      // From afar, points leave what is below them to be seen.
      const size = thing.kind === 'LaserScan' ? 3 : this.camera.scale < 40 ? 1 : 2;
      let before = '';
      for (let index = 0; index < count; index += 1) {
        const [x, y] = at(place(index)), k = index * 4;
        const own = thing.colours && thing.colours[k + 3] ? `rgb(${thing.colours[k]},${thing.colours[k + 1]},${thing.colours[k + 2]})` : thing.kind === 'LaserScan' ? style : palette.heights[Math.round((points[index * 3 + 2] - low) / (high - low || 1) * 31)];
        if (own !== before) { c.fillStyle = own; before = own; }
        c.fillRect(x - size / 2, y - size / 2, size, size);
      }
      return count;
    }
    if (thing.kind === 'Path') {
      c.strokeStyle = style; c.lineWidth = 2; c.beginPath();
      for (let index = 0; index < count; index += 1) { const p = at(place(index)); if (index) c.lineTo(...p); else c.moveTo(...p); }
      c.stroke();
      return count;
    }
    const poses = thing.kind === 'PoseArray' ? thing.tree.poses : [thing.tree.pose ? thing.tree.pose.pose || thing.tree.pose : null];
    poses.forEach((pose, index) => {
      if (pose) this.axes(c, at, times(m, matrix(pose.position, pose.orientation)), poses.length > 1 ? '' : name);
      else { c.fillStyle = style; c.beginPath(); c.arc(...at(place(index)), 5, 0, 7); c.fill(); }
    });
    if (poses.length === 1) this.trail(c, at, name, place(0), style);
    return count;
  },

  trail(c, at, name, place, style) {
    const trail = this.trails.get(name) || [];
    const last = trail.at(-1);
    if (!last || Math.hypot(...place.map((value, axis) => value - last[axis])) > 1 / this.camera.scale) trail.push(place);
    if (trail.length > TRAIL_MAX) trail.shift();
    this.trails.set(name, trail);
    c.strokeStyle = style; c.lineWidth = 2; c.beginPath();
    trail.forEach((p, index) => (index ? c.lineTo(...at(p)) : c.moveTo(...at(p))));
    c.stroke();
  },
};
