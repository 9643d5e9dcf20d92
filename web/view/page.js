// The view: what comes from the server goes to the views; keys, tabs, time.
'use strict';

const element = (id) => document.getElementById(id);
const SILENT_MS = 2500;

let catalog = { topics: [], mismatches: [], notices: [], left_out: 0 };
let nodes = [];
let links = [];
let palette = {};
let connected = false;
let heardAt = -Infinity;
let bannerText = '', bannerUntil = 0;
let current = 'topics';
const VIEWS = ['topics', 'graph', 'nodes', 'plots', 'pictures', 'scene'];

// State that a test prints if it waits in vain.
const forTests = () => ({ connected, topics: catalog.topics.length, frames: timeline.frames.length, asked, current, banner: element('banner').textContent });

function heard(message) {
  heardAt = performance.now();
  if (message.t === 'hello') {
    timeline.mode = message.mode;
    timeline.range = message.range_ms;
    element('subtitle').textContent = element('subtitle').title = message.subtitle;
    asked = '';
    look();
  } else if (message.t === 'catalog') { catalog = message; topicsView.key = ''; plotsView.drawChoices(); refresh(); }
  else if (message.t === 'nodes') { nodes = message.nodes; links = message.links; if (current === 'nodes') nodesView.draw(); }
  else if (message.t === 'state') { timeline.handleState(message); layout.restore(); refresh(); }
  else if (message.t === 'sample') { message.arrived = performance.now(); inspector.handleSample(message); plotsView.handleSample(message); }
  else if (message.t === 'scene') sceneView.handleScene(message);
  else if (['image', 'compressed'].includes(message.t)) picturesView.handlePicture(message, null);
  else if (['cloud', 'grid'].includes(message.t)) sceneView.handlePoints(message, null);
}

// A message of bytes: length of a JSON object, the object, padding, the bytes.
function heardBytes(view) {
  heardAt = performance.now();
  const length = view.getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(view.buffer, 4, length)));
  const body = new DataView(view.buffer, Math.ceil((4 + length) / 4) * 4);
  if (head.t === 'points') plotsView.handlePoints(head, body);
  else if (['image', 'compressed'].includes(head.t)) picturesView.handlePicture(head, body);
  else sceneView.handlePoints(head, body);
}

// Tells the server what is looked at, if that has changed.
let asked = '';
function look() {
  const values = new Set();
  if (inspector.topic) values.add(inspector.topic);
  if (current === 'plots' && element('plot-topic').value) values.add(element('plot-topic').value);
  const pictures = current === 'pictures' ? [...picturesView.chosen] : current === 'scene' ? [...sceneView.chosen] : [];
  const curves = plotsView.curves().map(({ topic, path }) => [topic, path]);
  const message = { t: 'look', values: [...values], pictures, curves };
  const text = JSON.stringify(message);
  if (text !== asked && connected) { asked = text; socket.send(message); }
  layout.write();
}

function select(name) {
  current = name;
  for (const view of VIEWS) element(`view-${view}`).hidden = view !== name;
  for (const tab of document.querySelectorAll('[role="tab"]')) {
    const isChosen = tab.dataset.view === name;
    tab.setAttribute('aria-selected', String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  if (name === 'plots') plotsView.open();
  look();
  refresh();
}

// Draws what is seen, once a screen.
let pending = false;
function refresh() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    if (current === 'topics') topicsView.draw();
    else if (current === 'graph') graphView.draw();
    else if (current === 'nodes') nodesView.draw();
    else if (current === 'plots') plotsView.draw();
    else if (current === 'pictures') picturesView.draw();
    else sceneView.draw();
    drawTimeline();
    drawStatus();
  });
}

function banner(text) { bannerText = text; bannerUntil = performance.now() + 6000; }

function drawStatus() {
  const now = performance.now();
  const silent = connected && now - heardAt > SILENT_MS;
  const wrong = !connected ? 'The page has lost its server; it tries again every second.' : silent ? 'The page hears nothing from its server.' : now < bannerUntil ? bannerText : '';
  element('banner').hidden = !wrong;
  element('banner').textContent = wrong;
  const status = element('status'), mismatches = catalog.mismatches.length;
  status.textContent = !connected ? 'no server' : timeline.mode === 'file' ? 'recording' : timeline.isFollowing() ? 'live' : 'paused';
  status.className = `status ${!connected || silent ? 'bad' : timeline.isFollowing() || timeline.mode === 'file' ? 'good' : 'warn'}`;
  element('wrong').hidden = !mismatches;
  element('wrong').textContent = `${mismatches} mismatch${mismatches > 1 ? 'es' : ''}`;
}

function readPalette() {
  const mixed = (name, share) => `color-mix(in srgb, ${colour(name)} ${share}%, transparent)`;
  palette = {
    line: colour('--c0'), light: mixed('--c1', 70), band: mixed('--c0', 22), muted: colour('--muted'), ink: colour('--ink'), paper: colour('--paper'), grid: colour('--line'), mark: colour('--c4'),
    curves: ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5'].map(colour),
    axes: ['--c1', '--c2', '--c0'].map(colour),
    // From low to high: blue over green to yellow, distinguishable with colour vision deficiencies.
    // Lighter on a dark page.
    heights: Array.from({ length: 32 }, (_, index) => `hsl(${250 - index * 6.2} 75% ${(isDark() ? 66 : 38) + index * (isDark() ? 0.1 : 0.8)}%)`),
  };
}

const isDark = () => getComputedStyle(document.documentElement).colorScheme === 'dark';

function themed() {
  readPalette();
  plotsView.charts.forEach((chart) => plotsView.rebuild(chart));
  for (const thing of sceneView.things.values()) if (thing.kind === 'grid') sceneView.paintCells(thing);
  refresh();
}

function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  themed();
  layout.write();
}

const socket = new LiveSocket(heard, (isOpen) => { connected = isOpen; asked = ''; if (isOpen) look(); drawStatus(); }, heardBytes);

for (const tab of document.querySelectorAll('[role="tab"]')) tab.addEventListener('click', () => select(tab.dataset.view));
element('tabs').addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.stopPropagation();
  select(VIEWS[(VIEWS.indexOf(current) + step + VIEWS.length) % VIEWS.length]);
  document.querySelector('[role="tab"][aria-selected="true"]').focus();
});
const exports = {
  'topics-csv': () => topicsView.exportCsv(),
  'graph-svg': () => exportSvg('graph', element('graph'), false),
  'graph-png': () => exportSvg('graph', element('graph'), true),
  'scene-png': () => exportCanvas('scene', element('space')),
};
for (const button of document.querySelectorAll('[data-export]')) button.addEventListener('click', exports[button.dataset.export]);

element('pause').addEventListener('click', () => { timeline.pause(timeline.isFollowing()); refresh(); });
element('live').addEventListener('click', () => { timeline.cursor = null; refresh(); });
element('slider').addEventListener('input', () => {
  const [low, high] = timeline.bounds();
  timeline.seek(low + Number(element('slider').value) * (high - low));
  refresh();
});
element('rate').addEventListener('change', () => socket.send({ t: 'play', on: timeline.playing, rate: Number(element('rate').value) }));
element('mark').addEventListener('click', () => { timeline.mark(); drawMarks(); plotsView.dirty = true; refresh(); });
element('help').addEventListener('click', () => element('help-dialog').showModal());
element('graph-observers').addEventListener('change', refresh);
element('wrong').addEventListener('click', () => select('nodes'));
element('theme').addEventListener('click', toggleTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themed);

addEventListener('keydown', (event) => {
  const target = event.target.tagName;
  if (event.ctrlKey || event.altKey || event.metaKey || element('help-dialog').open) return;
  if (event.key === 'Escape' && target === 'INPUT') { event.target.blur(); return; }
  if (target === 'INPUT' || target === 'SELECT') return;
  if (VIEWS[Number(event.key) - 1]) select(VIEWS[Number(event.key) - 1]);
  else if (event.key === '/') { event.preventDefault(); select('topics'); element('filter').focus(); }
  else if (event.key === ' ' && target !== 'BUTTON') { event.preventDefault(); element('pause').click(); }
  else if (event.key === 'm') element('mark').click();
  else if (event.key === 'd') toggleTheme();
  else if (event.key === '?') element('help').click();
  else if (event.key === 'Escape' && inspector.topic) { topicsView.chosen = null; inspector.open(null); refresh(); }
  else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') { timeline.seek(timeline.now() + (event.key === 'ArrowLeft' ? -1000 : 1000)); refresh(); }
});
addEventListener('resize', () => { plotsView.resize(); refresh(); });

// Points and poses come faster than figures.
let countedAt = performance.now(), countedBytes = 0;
setInterval(() => {
  if (current === 'plots' && plotsView.charts.length && timeline.isFollowing() || plotsView.dirty) refresh();
  if (current === 'scene' && sceneView.dirty) refresh();
  const now = performance.now();
  if (now - countedAt > 2000) {
    const perSecond = (socket.bytes - countedBytes) / (now - countedAt) * 1000;
    element('traffic').textContent = `${bytesText(perSecond)}/s to this page`;
    document.body.dataset.bytesPerSecond = perSecond.toFixed(0);
    [countedAt, countedBytes] = [now, socket.bytes];
    drawStatus();
  }
}, 50);

readPalette();
topicsView.start();
plotsView.start();
sceneView.start();
select('topics');
