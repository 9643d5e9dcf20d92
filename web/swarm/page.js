// The map of a swarm: where drones are, how old what is known of them is, and a button that kills one.
'use strict';

const element = (id) => document.getElementById(id);
const HISTORY_S = 60;
// A page that hears nothing for so long says so.
const SILENT_MS = 2000;
// Ages up to here have a colour of their own, ms.
const OLDEST_MS = 1000;
const AGE_STOPS = ['--c0', '--c4', '--bad'];
// A press this near a drone selects it, CSS pixels.
const PRESS_PX = 22;
const VIEWS = { top: [0, 1], front: [0, 2] };

let hello = null;
let state = null;
let view = null;
let heardAt = -Infinity;
let connected = false;
let selected = null;
let history = [];
// Half of what the map shows, m: grows with the swarm and never shrinks.
let half = 5;

// State that a test prints if it waits in vain.
const forTests = () => ({ state, connected, banner: element('banner').textContent });

const socket = new LiveSocket(heard, (isOpen) => { connected = isOpen; if (isOpen) select(selected); });

function heard(message) {
  if (message.t === 'hello') { hello = message; element('subtitle').textContent = message.title; }
  else if (message.t === 'view') { if (message.drone === selected) view = message; }
  else if (message.t === 'state') take(message);
}

function take(message) {
  heardAt = performance.now();
  if (state && message.s < state.s) history = [];
  state = message;
  for (const drone of state.drones) half = Math.max(half, 1.12 * Math.max(...drone.slice(0, 3).map(Math.abs)));
  history.push({ s: state.s, p50: state.age_p50_ms, p99: state.age_p99_ms, least: state.least_now_m });
  while (history.length && state.s - history[0].s > HISTORY_S) history.shift();
}

function select(number) {
  selected = number;
  view = null;
  socket.send({ t: 'select', drone: number });
}

// Living drones by number.
const living = () => (state ? state.drones.map((drone, number) => number).filter((number) => state.drones[number][6] === 'f') : []);

function kill() {
  const candidates = living();
  if (!candidates.length) return;
  const isAlive = selected !== null && candidates.includes(selected);
  const victim = isAlive ? selected : candidates[Math.floor(Math.random() * candidates.length)];
  socket.send({ t: 'kill', drone: victim });
  return victim;
}

// Colours -----------------------------------------------------------------------------------------------------------

const channels = (name) => { const hex = colour(name).slice(1); return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)); };

// The colour of an age in ms; without an age that of text in the background.
function ageColour(age) {
  if (age === null || age === undefined) return colour('--muted');
  const place = Math.min(1, Math.max(0, age / OLDEST_MS)) * (AGE_STOPS.length - 1);
  const index = Math.min(AGE_STOPS.length - 2, Math.floor(place)), share = place - index;
  const [from, to] = [channels(AGE_STOPS[index]), channels(AGE_STOPS[index + 1])];
  return `rgb(${from.map((value, channel) => Math.round(value + (to[channel] - value) * share)).join(',')})`;
}

function drawScale() {
  const { context: c, width } = prepared(element('scale'));
  // A narrow page has its words above.
  const isNarrow = width < 560, left = isNarrow ? 12 : 230, right = width - 40, step = isNarrow ? OLDEST_MS / 2 : OLDEST_MS / 4;
  for (let x = left; x < right; x += 2) { c.fillStyle = ageColour((x - left) / (right - left) * OLDEST_MS); c.fillRect(x, 8, 2, 8); }
  c.fillStyle = colour('--muted'); c.font = '12px system-ui, sans-serif'; c.textBaseline = 'top'; c.textAlign = 'left';
  const words = selected === null ? 'age at which others know a drone' : `age at which drone ${selected} knows it`;
  element('scale').setAttribute('aria-label', `colours: ${words}`);
  element('scale-words').textContent = words;
  element('scale-words').hidden = !isNarrow;
  if (!isNarrow) c.fillText(words, 2, 4);
  c.textAlign = 'center';
  for (let age = 0; age <= OLDEST_MS; age += step) c.fillText(age === OLDEST_MS ? `≥ ${age} ms` : `${age}`, left + (right - left) * age / OLDEST_MS, 19);
}

// The map -----------------------------------------------------------------------------------------------------------

function camera(width, height, axes) {
  const scale = Math.min(width, height) / 2 / half;
  return { scale, at: (p) => [width / 2 + p[axes[0]] * scale, height / 2 - p[axes[1]] * scale] };
}

function drawView(name) {
  const { context: c, width, height } = prepared(element(name));
  const axes = VIEWS[name];
  const { scale, at } = camera(width, height, axes);
  const step = 10 ** Math.floor(Math.log10(half)) * (half / 10 ** Math.floor(Math.log10(half)) > 4 ? 2 : 1);
  c.strokeStyle = colour('--grid'); c.fillStyle = colour('--muted'); c.lineWidth = 1;
  c.font = '11px system-ui, sans-serif'; c.textAlign = 'left'; c.textBaseline = 'bottom';
  for (let line = -Math.floor(half * 3 / step) * step; line <= half * 3; line += step) {
    const [x, y] = [width / 2 + line * scale, height / 2 - line * scale];
    c.beginPath(); c.moveTo(x, 0); c.lineTo(x, height); c.moveTo(0, y); c.lineTo(width, y); c.stroke();
    if (x > 0 && x < width - 20) c.fillText(`${line}`, x + 2, height - 2);
  }
  const known = new Map((view ? view.known : []).map((one) => [one[0], one]));
  drawKnown(c, at, scale, known);
  c.strokeStyle = colour('--bad'); c.lineWidth = 3;
  for (const [a, b] of state.near) {
    const [ax, ay] = at(state.drones[a]), [bx, by] = at(state.drones[b]);
    c.beginPath(); c.moveTo(ax, ay); c.lineTo(bx, by); c.stroke();
    c.beginPath(); c.arc((ax + bx) / 2, (ay + by) / 2, 12, 0, 7); c.stroke();
  }
  const radius = Math.max(3.5, 0.5 * state.collision_m * scale);
  state.drones.forEach((drone, number) => drawDrone(c, at, scale, radius, drone, number, known.get(number)));
}

// Draws the selected drone's estimates: each neighbour is somewhere in its circle.
function drawKnown(c, at, scale, known) {
  for (const [number, one] of known) {
    const [x, y] = at(one.slice(1));
    c.strokeStyle = c.fillStyle = ageColour(one[5]);
    c.lineWidth = 1;
    c.globalAlpha = 0.14;
    c.beginPath(); c.arc(x, y, Math.max(1, one[4] * scale), 0, 7); c.fill();
    c.globalAlpha = 0.7;
    c.stroke();
    const [tx, ty] = at(state.drones[number]);
    c.beginPath(); c.moveTo(x, y); c.lineTo(tx, ty); c.stroke();
    c.globalAlpha = 1;
  }
}

function drawDrone(c, at, scale, radius, drone, number, known) {
  const [x, y] = at(drone);
  const [hx, hy] = at(drone.slice(0, 3).map((place, axis) => place + drone[3 + axis]));
  const isSelected = number === selected;
  if (drone[6] !== 'f') {
    c.strokeStyle = drone[7] === null ? colour(drone[6] === 'k' ? '--ink' : '--warn') : ageColour(drone[7]); c.lineWidth = 2.5;
    c.beginPath(); c.moveTo(x - 5, y - 5); c.lineTo(x + 5, y + 5); c.moveTo(x - 5, y + 5); c.lineTo(x + 5, y - 5); c.stroke();
  } else {
    c.strokeStyle = c.fillStyle = selected === null ? ageColour(drone[7]) : isSelected ? colour('--ink') : ageColour(known ? known[5] : null);
    c.lineWidth = 1.2;
    c.beginPath(); c.moveTo(x, y); c.lineTo(hx, hy); c.stroke();
    c.beginPath(); c.arc(x, y, radius, 0, 7); c.fill();
  }
  if (isSelected) { c.strokeStyle = colour('--ink'); c.lineWidth = 2; c.beginPath(); c.arc(x, y, radius + 6, 0, 7); c.stroke(); }
}

function pressed(name, event) {
  if (!state) return;
  const canvas = element(name), box = canvas.getBoundingClientRect();
  const { at } = camera(canvas.clientWidth, canvas.clientHeight, VIEWS[name]);
  let best = null, distance = PRESS_PX;
  state.drones.forEach((drone, number) => {
    const [x, y] = at(drone);
    const far = Math.hypot(x - (event.clientX - box.left), y - (event.clientY - box.top));
    if (far < distance) { best = number; distance = far; }
  });
  select(best);
}

// Figures -----------------------------------------------------------------------------------------------------------

// The alarm as a sentence; null if there is none.
function alarm() {
  if (!connected) return 'The page has lost its server: the flight has ended, or was ended.';
  if (!state || performance.now() - heardAt > SILENT_MS) return 'The page hears nothing from the flight.';
  if (state.collisions > 0) return `${state.collisions} ${state.collisions === 1 ? 'pair has' : 'pairs have'} collided.`;
  if (state.silent > 0 && state.s > 10) return `${state.silent} ${state.silent === 1 ? 'drone sends' : 'drones send'} nothing, although none was killed here.`;
  return null;
}

function figures(id, pairs) {
  const list = element(id);
  if (list.children.length !== pairs.length * 2) {
    list.replaceChildren(...pairs.flatMap(() => [document.createElement('dt'), document.createElement('dd')]));
  }
  pairs.forEach(([name, value], index) => { list.children[2 * index].textContent = name; list.children[2 * index + 1].textContent = value; });
}

const metres = (value) => (value === null ? '–' : `${value.toFixed(2)} m`);
const milliseconds = (value) => (value === null ? '–' : `${value.toFixed(0)} ms`);

function drawPanels() {
  element('age').textContent = milliseconds(state.age_p50_ms);
  element('age-note').textContent = `at the median; 99 of 100 are younger than ${milliseconds(state.age_p99_ms)}`;
  element('separation').textContent = metres(state.least_now_m);
  element('separation-note').textContent = `between two living drones now; ${metres(state.least_m)} since the start. Bodies touch below the dashed line.`;
  const x = [Math.max(0, state.s - HISTORY_S), Math.max(10, state.s)];
  const line = (of, colourName, name) => ({ name, points: history.filter((one) => one[of] !== null).map((one) => [one.s, one[of]]), colour: colourName });
  const ages = history.flatMap((one) => [one.p99]).filter((value) => value !== null);
  drawChart(element('ages'), [line('p50', '--c0', 'median'), line('p99', '--c1', '99 of 100')], { x, y: [0, Math.max(100, ...ages) * 1.1], xLabel: 's' });
  const least = history.map((one) => one.least).filter((value) => value !== null);
  drawChart(element('separations'), [line('least', '--c2')], { x, y: [0, Math.max(4, ...least) * 1.1], xLabel: 's', rules: [state.collision_m] });
  figures('figures', [
    ['time', `${state.s.toFixed(1)} s`], ['drones flying', living().length], ['killed', state.killed], ['silent', state.silent],
    ['pairs that collided', state.collisions], ['near misses', state.near_misses], ['neighbours known', `${(100 * state.known_share).toFixed(1)} %`],
    ['air busy', `${(100 * state.air).toFixed(1)} %`],
  ]);
  const table = element('misses');
  while (table.rows.length > state.misses.length) table.deleteRow(-1);
  state.misses.forEach(([seconds, one, other, touched], index) => {
    const line = table.rows[index] || table.insertRow();
    [`${seconds.toFixed(1)} s`, `${one}–${other}`, touched ? 'touched' : `< ${state.near_m} m`].forEach((text, column) => { (line.cells[column] || line.insertCell()).textContent = text; });
    line.className = touched ? 'broken' : '';
  });
  element('no-miss').hidden = state.misses.length > 0;
  drawSelected();
}

function drawSelected() {
  const everybody = element('everybody');
  everybody.disabled = selected === null;
  everybody.textContent = selected === null ? 'No drone selected' : `Leave drone ${selected}`;
  const canKill = selected !== null && state.drones[selected] && state.drones[selected][6] === 'f';
  element('kill').textContent = canKill ? `Kill drone ${selected}` : 'Kill a drone';
  element('kill').disabled = living().length === 0;
  element('of-selected').hidden = selected === null;
  if (selected === null || !state.drones[selected]) return;
  const drone = state.drones[selected];
  element('selected-name').textContent = `Drone ${selected}`;
  const oldest = view && view.known.length ? view.known.reduce((a, b) => (b[5] > a[5] ? b : a)) : null;
  figures('selected', [
    ['position, m', drone.slice(0, 3).map((place) => place.toFixed(1)).join(', ')],
    ['speed', `${Math.hypot(...drone.slice(3, 6)).toFixed(1)} m/s`],
    ['others know it', drone[7] === null ? 'not' : `${milliseconds(drone[7])} old`],
    ['knows', view ? `${view.known.length} others` : '–'],
    ['oldest', oldest ? `drone ${oldest[0]}, ${milliseconds(oldest[5])}, within ${metres(oldest[4])}` : '–'],
  ]);
}

function draw() {
  requestAnimationFrame(draw);
  const wrong = alarm();
  element('banner').hidden = wrong === null;
  if (wrong !== null) element('banner').textContent = wrong;
  document.body.dataset.alarm = wrong === null ? '' : 'red';
  const status = element('status');
  status.textContent = !connected ? 'no connection' : state && state.over ? 'over' : state ? 'flying' : 'waiting';
  status.className = `status ${wrong ? 'bad' : state && !state.over ? 'good' : ''}`;
  if (!state) return;
  Object.keys(VIEWS).forEach(drawView);
  drawScale();
  drawPanels();
}

for (const name of Object.keys(VIEWS)) element(name).addEventListener('pointerdown', (event) => pressed(name, event));
addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.code];
  if (event.code === 'Escape') select(null);
  if (step && state && document.activeElement.tagName === 'CANVAS') { event.preventDefault(); select(((selected === null ? -step : selected) + step + state.drones.length) % state.drones.length); }
});
element('kill').addEventListener('click', kill);
element('everybody').addEventListener('click', () => select(null));
element('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark';
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
});
requestAnimationFrame(draw);
