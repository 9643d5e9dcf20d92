// Which node sends to which: nodes as boxes, what flows between two of them as one edge with its age.
'use strict';

const BOX = { width: 156, height: 46, gapX: [96, 170], gapY: [34, 90] };
const EDGES_MAX = 400;
// A label has two lines; the share of an edge's way at which it stands is the first of these where it lies on nothing.
const LABEL = { height: 28, letter: 6 };
const LABEL_PLACES = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78];

const graphView = {
  key: '',
  edges: [],

  // From the catalog: nodes, and per pair the topics. What reads nearly everything and writes nothing, as a recorder does, would hide the rest.
  collect() {
    const found = this.collectAll();
    const isObserver = (node) => !node.writes.size && node.reads.size > 8 && node.reads.size >= 0.8 * catalog.topics.length;
    const observers = found.nodes.filter(isObserver), ids = new Set(observers.map((node) => node.id));
    const label = element('graph-observers').parentElement;
    label.hidden = !observers.length;
    label.title = observers.map((node) => `${node.name} reads ${node.reads.size} topics`).join(', ');
    if (element('graph-observers').checked) return found;
    return { nodes: found.nodes.filter((node) => !ids.has(node.id)), pairs: found.pairs.filter((pair) => !ids.has(pair.to)) };
  },

  collectAll() {
    const nodes = new Map(), pairs = new Map();
    const node = (end) => {
      if (!nodes.has(end.node)) nodes.set(end.node, { id: end.node, name: end.name, writes: new Set(), reads: new Set(), alone: 0 });
      return nodes.get(end.node);
    };
    for (const topic of catalog.topics) {
      for (const writer of topic.writers) node(writer).writes.add(topic.name);
      for (const reader of topic.readers) node(reader).reads.add(topic.name);
      for (const writer of topic.writers) {
        if (!topic.readers.length) node(writer).alone += 1;
        for (const reader of topic.readers) {
          const wrong = catalog.mismatches.some((one) => one.topic === topic.name && one.writer_node === writer.node && one.reader_node === reader.node);
          const key = `${writer.node} ${reader.node} ${wrong}`;
          if (!pairs.has(key)) pairs.set(key, { from: writer.node, to: reader.node, wrong, topics: [] });
          pairs.get(key).topics.push(topic);
        }
      }
    }
    return { nodes: [...nodes.values()].sort((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id)), pairs: [...pairs.values()].slice(0, EDGES_MAX) };
  },

  // Columns by the longest way from a source; cycles end where they were begun.
  layers({ nodes, pairs }) {
    const layer = new Map(nodes.map((one) => [one.id, 0]));
    for (let round = 0; round < Math.min(nodes.length, 6); round += 1) {
      for (const { from, to } of pairs) {
        const back = pairs.some((other) => other.from === to && other.to === from && from > to);
        if (from !== to && !back && layer.get(to) <= layer.get(from) && layer.get(from) < 5) layer.set(to, layer.get(from) + 1);
      }
    }
    const columns = [];
    for (const one of nodes) (columns[layer.get(one.id)] ||= []).push(one);
    // An edge that passes a column has a place of its own there, so that it does not run behind a box.
    for (const pair of pairs) {
      pair.via = [];
      for (let between = layer.get(pair.from) + 1; between < layer.get(pair.to); between += 1) {
        const place = { id: `${pair.from} ${pair.to} ${pair.wrong} ${between}`, passes: true, name: '' };
        pair.via.push(place.id);
        (columns[between] ||= []).push(place);
      }
    }
    this.untangle(columns.filter(Boolean), pairs);
    return columns.filter(Boolean);
  },

  // Each column in the order of the mean place of its neighbours, a few times back and forth.
  untangle(columns, pairs) {
    const steps = pairs.flatMap((pair) => { const way = [pair.from, ...pair.via, pair.to]; return way.slice(1).map((id, index) => [way[index], id]); });
    for (let round = 0; round < 4; round += 1) {
      const place = new Map(columns.flatMap((column) => column.map((one, index) => [one.id, index / column.length])));
      for (const column of columns) {
        const mean = (one) => {
          const near = steps.filter(([a, b]) => a === one.id || b === one.id).map(([a, b]) => place.get(a === one.id ? b : a));
          return near.length ? near.reduce((sum, value) => sum + value, 0) / near.length : 2;
        };
        const means = new Map(column.map((one) => [one.id, mean(one)]));
        column.sort((a, b) => means.get(a.id) - means.get(b.id));
      }
    }
  },

  draw() {
    const found = this.collect();
    const columns = this.layers(found);
    const svg = element('graph');
    if (timeline.mode === 'file') element('graph-whose').textContent = 'the recorder had';
    const key = JSON.stringify([svg.parentElement.clientHeight, svg.parentElement.clientWidth, columns.map((column) => column.filter((one) => !one.passes).map((one) => [one.id, one.writes.size, one.reads.size, one.alone])), found.pairs.map((pair) => [pair.from, pair.to, pair.wrong, pair.topics.length])]);
    if (key !== this.key) { this.key = key; this.build(svg, columns, found); }
    for (const edge of this.edges) this.label(edge);
  },

  build(svg, columns, { pairs }) {
    const tallest = Math.max(1, ...columns.map((column) => column.length));
    const room = (svg.parentElement.clientHeight - 40) / tallest - BOX.height, gapY = Math.min(BOX.gapY[1], Math.max(BOX.gapY[0], room));
    // Columns come closer before they become smaller.
    const count = Math.max(1, columns.length), roomX = (svg.parentElement.clientWidth / 0.8 - 40 - count * BOX.width) / Math.max(1, count - 1);
    const gapX = Math.min(BOX.gapX[1], Math.max(BOX.gapX[0], roomX));
    const width = count * (BOX.width + gapX) - gapX + 40, height = tallest * (BOX.height + gapY) + 30;
    svg.setAttribute('width', width); svg.setAttribute('height', height); svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    // As large as it is, smaller if need be, but legible.
    Object.assign(svg.style, { width: '100%', maxWidth: `${width}px`, minWidth: `${Math.round(width * 0.7)}px`, height: 'auto' });
    const make = (name, attributes, text) => {
      const one = document.createElementNS('http://www.w3.org/2000/svg', name);
      for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
      if (text !== undefined) one.textContent = text;
      return one;
    };
    const place = new Map();
    columns.forEach((column, x) => column.forEach((one, y) => {
      const free = (height - column.length * (BOX.height + gapY) + gapY) / 2;
      place.set(one.id, { x: 20 + x * (BOX.width + gapX), y: free + y * (BOX.height + gapY), node: one });
    }));
    const parts = [];
    const texts = [];
    this.edges = pairs.map((pair) => {
      const a = place.get(pair.from), b = place.get(pair.to);
      const forward = b.x > a.x;
      const [x0, y0] = [a.x + (forward ? BOX.width : BOX.width / 2), a.y + (forward ? BOX.height / 2 : BOX.height)];
      const [x1, y1] = [b.x + (forward ? 0 : BOX.width / 2), b.y + (forward ? BOX.height / 2 : BOX.height)];
      const stops = forward ? [...pair.via.map((id) => { const at = place.get(id); return [[at.x, at.y + BOX.height / 2], [at.x + BOX.width, at.y + BOX.height / 2]]; }).flat(), [x1 - 6, y1]] : [];
      let [px, py] = [x0, y0];
      const curves = stops.map(([x, y]) => { const half = (x - px) / 2, step = `C${px + half} ${py} ${x - half} ${y} ${x} ${y}`; [px, py] = [x, y]; return step; });
      const d = forward ? `M${x0} ${y0} ${curves.join(' ')}` : `M${x0} ${y0} C${x0} ${y0 + 60} ${x1} ${y1 + 60} ${x1} ${y1 + 4}`;
      const group = make('g', { class: 'edge', tabindex: '0', role: 'button' });
      const path = make('path', { d, 'marker-end': 'url(#arrow)' });
      const text = make('text', { 'text-anchor': 'middle' });
      text.append(make('tspan', {}), make('tspan', { dy: 13, 'font-weight': 600 }));
      group.append(path);
      texts.push(text);
      parts.push(group);
      const edge = { pair, group, path, text };
      const describe = () => this.describe(edge);
      group.addEventListener('mouseenter', describe); group.addEventListener('focus', describe);
      const choose = () => topicsView.choose(pair.topics[0].name);
      group.addEventListener('click', choose);
      group.addEventListener('keydown', (event) => { if (event.key === 'Enter') choose(); });
      return edge;
    });
    for (const { x, y, node } of place.values()) {
      if (node.passes) continue;
      const group = make('g', { class: 'node' });
      group.append(make('rect', { x, y, width: BOX.width, height: BOX.height, rx: 8 }));
      group.append(make('text', { x: x + 10, y: y + 19 }, shortened(node.name, 21)));
      const alone = node.alone ? `, ${node.alone} unread` : '';
      const flows = [node.writes.size ? `${node.writes.size} out${alone}` : '', node.reads.size ? `${node.reads.size} in` : ''];
      group.append(make('text', { x: x + 10, y: y + 36, class: 'small' }, flows.filter(Boolean).join(' · ')));
      group.append(make('title', {}, `${node.name} ${node.id}`));
      parts.push(group);
    }
    const marker = make('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto' });
    marker.append(make('path', { d: 'M0 0 L8 4 L0 8 z', class: 'head' }));
    const defs = make('defs', {});
    defs.append(marker);
    svg.replaceChildren(defs, ...parts, ...texts);
    this.placeLabels([...place.values()].filter(({ node }) => !node.passes).map(({ x, y }) => ({ x: x + BOX.width / 2, y: y + BOX.height / 2, width: BOX.width, height: BOX.height })));
  },

  // Labels lie neither on boxes nor on each other, where there is room.
  placeLabels(taken) {
    const covers = (a, b) => Math.max(0, (a.width + b.width) / 2 - Math.abs(a.x - b.x)) * Math.max(0, (a.height + b.height) / 2 - Math.abs(a.y - b.y));
    for (const { path, text, pair } of this.edges) {
      const length = path.getTotalLength(), width = Math.max(14, this.title(pair).length) * LABEL.letter;
      const spots = LABEL_PLACES.map((share) => {
        const { x, y } = path.getPointAtLength(length * share);
        const spot = { x, y, width, height: LABEL.height };
        return { ...spot, covered: taken.reduce((sum, other) => sum + covers(spot, other), 0) };
      });
      const best = spots.find((spot) => spot.covered === 0) || spots.reduce((a, b) => (b.covered < a.covered ? b : a));
      taken.push(best);
      text.setAttribute('y', best.y - 3);
      for (const line of text.children) line.setAttribute('x', best.x);
    }
  },

  title: (pair) => (pair.topics.length === 1 ? shortened(pair.topics[0].name, 24) : `${pair.topics.length} topics`),

  label({ pair, path, text, group }) {
    const ages = pair.topics.map((topic) => this.age(topic.id));
    const oldest = Math.max(-Infinity, ...ages.map((age) => age.value).filter(known));
    const worst = ages.find((age) => age.value === oldest) || { value: NaN, bound: NaN };
    const bytes = pair.topics.reduce((sum, topic) => sum + (timeline.value(topic.id, COLUMN.bytes) || 0), 0);
    const shown = pair.wrong ? 'does not match' : ageText(worst.value, worst.bound);
    [text.children[0].textContent, text.children[1].textContent] = [this.title(pair), shown];
    path.setAttribute('stroke', pair.wrong ? colour('--bad') : ageColour(worst.value));
    path.setAttribute('stroke-dasharray', pair.wrong ? '5 5' : 'none');
    path.setAttribute('stroke-width', String(1.2 + Math.min(3.5, Math.log10(1 + bytes) / 2)));
    group.setAttribute('aria-label', `${this.title(pair)} ${shown}`);
    path.dataset.age = String(worst.value);
  },

  age(id) {
    const p50 = timeline.value(id, COLUMN.p50);
    return { value: known(p50) ? p50 : timeline.value(id, COLUMN.max), bound: timeline.value(id, COLUMN.bound) };
  },

  describe({ pair }) {
    const lines = pair.topics.slice(0, 40).map((topic) => {
      const age = this.age(topic.id);
      return pair.wrong ? `${topic.name} ${catalog.mismatches.find((one) => one.topic === topic.name).why}` : `${topic.name} ${ageText(age.value, age.bound)}`;
    });
    element('edge').textContent = lines.join('   ');
  },
};

// The end of a name tells it apart.
const shortened = (name, most) => (name.length > most ? `…${name.slice(1 - most)}` : name);

// From fresh to old, distinguishable with colour vision deficiencies: blue, green, yellow, orange.
function ageColour(value) {
  if (!known(value)) return palette.muted;
  const steps = ['--c0', '--c2', '--c4', '--c1'];
  return colour(steps[value < 1 ? 0 : value < 10 ? 1 : value < 100 ? 2 : 3]);
}
