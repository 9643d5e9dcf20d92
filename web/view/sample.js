// The chosen topic: its newest sample as values, the way it came, the nodes that have it.
'use strict';

const TREE_LIST_MAX = 24;
// Longer lists are folded until somebody opens them.
const TREE_LIST_OPEN = 4;

const inspector = {
  topic: null,
  sample: null,
  shownAt: 0,
  // Paths of the lists that were opened.
  unfolded: new Set(),

  open(name) {
    this.topic = name;
    this.sample = null;
    this.unfolded.clear();
    element('inspector').hidden = !name;
    this.draw();
    // The charts have the room beside it.
    plotsView.resize();
    look();
  },

  handleSample(message) {
    if (message.topic !== this.topic || !timeline.isFollowing() && timeline.mode === 'live') return;
    this.sample = message;
    this.shownAt = performance.now();
    this.draw();
  },

  draw() {
    const box = element('inspector');
    const topic = catalog.topics.find((one) => one.name === this.topic);
    if (!topic) { box.hidden = true; return; }
    // The list of values keeps its place while values change.
    const scrolled = box.scrollTop, focused = document.activeElement && document.activeElement.dataset.path;
    const parts = [this.head(topic)];
    if (this.sample) parts.push(this.way(this.sample), this.values(this.sample));
    else parts.push(note('no sample yet'));
    parts.push(this.ends(topic));
    box.replaceChildren(...parts);
    box.scrollTop = scrolled;
    if (focused) box.querySelector(`[data-path="${CSS.escape(focused)}"]`)?.focus();
  },

  head(topic) {
    const box = document.createElement('div');
    const title = document.createElement('h2');
    title.textContent = topic.name;
    const type = note(topic.type || 'no type');
    const bar = document.createElement('div');
    bar.className = 'bar';
    const button = (text, act, label) => {
      const one = document.createElement('button');
      one.textContent = text;
      if (label) one.setAttribute('aria-label', label);
      one.addEventListener('click', act);
      bar.append(one);
    };
    button('Plot age', () => { plotsView.add(topic.name, '@age_ms'); plotsView.add(topic.name, '@bound_ms', plotsView.charts.length - 1); select('plots'); });
    if (['image', 'compressed'].includes(topic.kind)) button('Picture', () => { picturesView.chosen.add(topic.name); select('pictures'); });
    if (['cloud', 'grid', 'scene'].includes(topic.kind)) button('Scene', () => { sceneView.chosen.add(topic.name); select('scene'); });
    button('Close', () => { topicsView.chosen = null; this.open(null); topicsView.drawRows(); }, 'close the chosen topic');
    box.append(title, type, bar);
    return box;
  },

  // From the moment the content was true to this screen.
  way(sample) {
    const box = document.createElement('div');
    box.append(subtitle('way of this sample'));
    const way = document.createElement('div');
    way.className = 'way';
    const routes = { shm: 'shared memory', udp: 'UDP' };
    const steps = [];
    let whole = '';
    if (known(sample.source_ms)) steps.push([`content true, by ${sample.publisher}`, '']);
    const bound = known(sample.bound_ms) ? (sample.bound_ms === 0 ? ', one clock' : ` ± ${timeText(sample.bound_ms)}`) : ', no bound proven';
    steps.push([timeline.mode === 'file' ? 'taken by the recorder' : `taken by this view (${routes[sample.route] || sample.route})`, known(sample.age_ms) ? `+ ${timeText(sample.age_ms)}${bound}` : 'age not known']);
    if (timeline.mode === 'live') {
      steps.push(['sent to this page', `+ ${timeText(sample.sent_ms - sample.receive_ms)}`]);
      const clock = socket.clock(sample.arrived);
      if (clock) {
        const way = Math.max(0, clock.at - sample.sent_ms);
        steps.push(['arrived in this browser', `+ ${ageText(way, clock.bound)}`]);
        if (known(sample.age_ms)) whole = ageText(sample.age_ms + sample.sent_ms - sample.receive_ms + way, known(sample.bound_ms) ? sample.bound_ms + clock.bound : null);
      }
    }
    steps.forEach(([what, time], index) => {
      const dot = document.createElement('i');
      if (index === steps.length - 1) dot.className = 'last';
      const text = document.createElement('span');
      text.textContent = what;
      const figure = document.createElement('span');
      figure.className = 'figure';
      figure.textContent = time;
      way.append(dot, text, figure);
    });
    const missed = sample.missed ? `, ${sample.missed} missing before it` : '';
    box.append(way);
    if (whole) box.append(note(`age on arrival in this browser: ${whole}`));
    box.append(note(`sequence number ${sample.sequence}${missed}, ${sample.bytes} bytes, ${sample.format}`));
    return box;
  },

  values(sample) {
    const box = document.createElement('div');
    box.append(subtitle('values'));
    if (sample.tree !== undefined) {
      const tree = document.createElement('div');
      tree.className = 'tree';
      this.branch(tree, sample.tree, '');
      box.append(tree);
      return box;
    }
    const why = note(sample.why);
    why.className = 'why';
    const raw = document.createElement('div');
    raw.className = 'raw';
    raw.textContent = sample.text && !/[\u0000-\u0008]/.test(sample.text) ? sample.text : sample.raw;
    box.append(why, raw);
    return box;
  },

  branch(box, value, path) {
    const entries = Array.isArray(value) ? value.slice(0, TREE_LIST_MAX).map((item, index) => [`[${index}]`, item]) : Object.entries(value);
    for (const [key, item] of entries) {
      const line = box.appendChild(document.createElement('div'));
      const name = line.appendChild(document.createElement('span'));
      name.className = 'key';
      name.textContent = key;
      const here = key.startsWith('[') ? path + key : path ? `${path}.${key}` : key;
      if (Array.isArray(item) && item.length > TREE_LIST_OPEN) { this.fold(line, name, item, here); continue; }
      if (item !== null && typeof item === 'object') {
        if (Array.isArray(item)) line.append(` ${item.length}`);
        this.branch(line, item, here);
        continue;
      }
      line.append(` ${shortValue(item)}`);
      if (typeof item === 'number' || typeof item === 'boolean') {
        const plot = line.appendChild(document.createElement('button'));
        plot.textContent = '+';
        plot.dataset.path = here;
        plot.setAttribute('aria-label', `plot ${here}`);
        plot.addEventListener('click', () => plotsView.add(this.topic, here));
      }
    }
    if (Array.isArray(value) && value.length > TREE_LIST_MAX) box.append(note(`and ${value.length - TREE_LIST_MAX} more`));
  },

  fold(line, name, list, path) {
    const fold = line.appendChild(document.createElement('details')), head = fold.appendChild(document.createElement('summary'));
    head.dataset.path = path;
    const first = list.slice(0, 6).filter((item) => item === null || typeof item !== 'object').map(shortValue).join(', ');
    head.append(name, ` ${list.length}${first ? `: ${first}…` : ''}`);
    const open = () => { if (fold.open && fold.children.length === 1) this.branch(fold.appendChild(document.createElement('div')), list, path); };
    fold.open = this.unfolded.has(path);
    open();
    fold.addEventListener('toggle', () => { if (fold.open) this.unfolded.add(path); else this.unfolded.delete(path); open(); });
  },

  ends(topic) {
    const box = document.createElement('div');
    for (const [title, ends] of [['publishers', topic.writers], ['subscribers', topic.readers]]) {
      box.append(subtitle(`${title}, ${ends.length}`));
      for (const end of ends.slice(0, 12)) box.append(note(`${end.name}: ${end.qos || 'no QoS in the recording'}`));
    }
    const wrong = catalog.mismatches.filter((one) => one.topic === topic.name);
    for (const one of wrong) {
      const line = note(`${one.writer} and ${one.reader} do not match: ${one.why}`);
      line.className = 'why';
      box.append(line);
    }
    return box;
  },
};

const shortValue = (item) => String(typeof item === 'number' && !Number.isInteger(item) ? Number(item.toPrecision(7)) : item);

function note(text) {
  const line = document.createElement('div');
  line.className = 'muted';
  line.textContent = text;
  return line;
}

function subtitle(text) {
  const line = document.createElement('h3');
  line.textContent = text;
  return line;
}

// Paths of all numbers in a tree, as plots take them.
function numbersIn(value, path, found) {
  if (found.length > 400) return found;
  if (typeof value === 'number' || typeof value === 'boolean') found.push(path);
  else if (Array.isArray(value)) value.slice(0, TREE_LIST_MAX).forEach((item, index) => numbersIn(item, `${path}[${index}]`, found));
  else if (value !== null && typeof value === 'object') for (const [key, item] of Object.entries(value)) numbersIn(item, path ? `${path}.${key}` : key, found);
  return found;
}
