// The page of the tele-operation: shows the arm, and sends one operator's hand.
'use strict';

const element = (id) => document.getElementById(id);
const views = ['space', 'front', 'top', 'side'].map((name) => new Scene(element(name), name));
const KEYS = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1] };
const KEY_SPEED_M_S = 0.08;
const PAD_SPEED_M_S = 0.15;
const TRAIL_MAX = 1500;
const HISTORY_MS = 10000;
// A page that hears nothing for so long says so.
const SILENT_MS = 100;
const JOINTS = [['base', 'base'], ['shoulder', 'sh.'], ['elbow', 'elbow'], ['wrist 1', 'w1'], ['wrist 2', 'w2'], ['wrist 3', 'w3']];
const COLOURS = ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5'];

let hello = null;
let state = null;
// State that a test prints if it waits in vain.
const forTests = () => ({ state, operating, connected, hand, banner: element('banner').textContent });

let heardAt = -Infinity;
let connected = false;
let operating = false;
let trail = [];
let history = [];
let analysis = null;
// The hand: a point in m that only differences of mean anything; it moves while the clutch is held.
const hand = { p: [0, 0, 0], clutch: false, pointer: null, keys: new Set(), pad: false };

const socket = new LiveSocket(heard, (isOpen) => {
  connected = isOpen;
  if (!isOpen) letGo();
});

function heard(message) {
  if (message.t === 'hello') { hello = message; showWhat(message); }
  else if (message.t === 'analysis') { analysis = message; drawAnalysis(); }
  else if (message.t === 'taken') { operating = true; element('operate').textContent = 'Let go'; }
  else if (message.t === 'refused') { notice(message.why); }
  else if (message.t === 'state') take(message);
}

// A recording cannot be operated.
function showWhat({ subtitle, replay }) {
  element('subtitle').textContent = subtitle;
  for (const id of ['operate', 'scale-label', 'drag']) element(id).hidden = replay;
}

// How well the page itself kept up since it was opened, ms, and when it turned red, ms of the server's clock.
const kept = { frameGap: 0, drawGap: 0, lateness: 0, redAt: null };
let drawnAt = performance.now();

function take(message) {
  const now = performance.now();
  if (heardAt > -Infinity) kept.frameGap = Math.max(kept.frameGap, now - heardAt);
  kept.lateness = Math.max(kept.lateness, message.lateness_ms || 0);
  heardAt = now;
  state = message;
  if (!message.body) return;
  trail.push(...message.trail);
  if (trail.length > TRAIL_MAX) trail = trail.slice(-TRAIL_MAX);
  // States that the server repeats while the controller is silent are not new.
  if (!isSilent()) history.push({ at: heardAt, age: message.age_ms, bound: message.bound_ms, velocity: message.velocity });
  while (history.length && heardAt - history[0].at > HISTORY_MS) history.shift();
}

let noticeUntil = 0;
let noticeText = '';
function notice(text) { noticeText = text; noticeUntil = performance.now() + 5000; }

// No state is younger than the limit: neither from the controller to the server, nor from there to here.
function isSilent() {
  return !connected || !state || performance.now() - heardAt > 3 * SILENT_MS || state.silent_ms === null || state.silent_ms > SILENT_MS;
}

// The alarm as a sentence; null if there is none.
function alarm() {
  if (!connected) return 'The page has lost its server. The arm stops by the age of its commands; press and hold again after it comes back.';
  if (performance.now() - heardAt > 3 * SILENT_MS || !state) return 'The page hears nothing from its server.';
  if (state.silent_ms === null) return 'No controller was heard yet.';
  if (state.silent_ms > SILENT_MS) return `The controller has been silent for ${(state.silent_ms / 1000).toFixed(1)} s.`;
  if (state.mode === 'stopping' || state.mode === 'stopped') return `Stopped: ${hello ? hello.rules[state.rule] : ''}. Release and press again to go on.`;
  return null;
}

// A number that is rounded to zero has no sign.
const fixed = (value, digits) => value.toFixed(digits).replace(/^-(0\.?0*)$/, '$1');

function figures(id, pairs) {
  const list = element(id);
  if (list.children.length !== pairs.length * 2) {
    list.replaceChildren(...pairs.flatMap(() => [document.createElement('dt'), document.createElement('dd')]));
  }
  pairs.forEach(([name, value], index) => { list.children[2 * index].textContent = name; list.children[2 * index + 1].textContent = value; });
}

function row(table, index, cells) {
  const line = table.rows[index] || table.insertRow();
  cells.forEach((text, column) => { (line.cells[column] || line.insertCell()).textContent = text; });
  return line;
}

// Last values, shown as such while nothing newer is known.
const LIVE = ['flow', 'joints', 'pose', 'rules'];

function drawPanels() {
  const silent = isSilent();
  for (const id of LIVE) element(id).classList.toggle('stale', silent);
  const age = silent ? 'not known' : state.age_ms === null ? 'no command yet' : `${state.age_ms.toFixed(2)} ms ± ${state.bound_ms === null ? '?' : state.bound_ms.toFixed(2)}`;
  element('age').textContent = age;
  figures('flow', [
    ['commands a second', silent ? 'not known' : state.rate_hz.toFixed(0)], ['commands', state.commands], ['missed', state.missed], ['overtaken', state.outdated],
    ['periods of the loop', state.periods], ['late periods', `${state.late_periods} (${(100 * state.late_periods / Math.max(1, state.periods)).toFixed(2)} %)`],
    ['latest period', `${state.lateness_ms.toFixed(2)} ms`], ['slowest picture here', `${kept.drawGap.toFixed(0)} ms`],
  ]);
  const joints = element('joints');
  row(joints, 0, ['', '°', '°/s', 'V']);
  state.joints.forEach((angle, index) => row(joints, index + 1, [
    JOINTS[index][0], fixed(angle * 180 / Math.PI, 2),
    fixed(state.velocity[index] * 180 / Math.PI, 1), fixed(state.voltage[index], 3)]));
  const mm = (p) => p.map((x) => fixed(x * 1000, 1)).join(', ');
  const error = Math.hypot(...state.goal.map((x, axis) => x - state.position[axis])) * 1000;
  figures('pose', [['tool, mm', mm(state.position)], ['goal, mm', mm(state.goal)], ['distance, mm', error.toFixed(2)],
    ['hand, mm', state.hand ? mm(state.hand.position) : '–'], ['hand, mm/s', state.hand ? (Math.hypot(...state.hand.velocity) * 1000).toFixed(0) : '–'],
    ['clutch', state.hand ? (state.hand.clutch ? 'pressed' : 'released') : '–'],
    ['branch', state.branch || '–'], ['smallest singular value', state.sigma.toFixed(3)], ['changes of branch', state.flips]]);
  const rules = element('rules');
  hello.rules.forEach((sentence, index) => {
    const line = row(rules, index, [sentence, state.rules[index]]);
    line.className = index === state.rule ? 'broken' : '';
  });
  const now = performance.now();
  const series = (of) => history.filter((sample) => of(sample) !== null).map((sample) => [(sample.at - now) / 1000, of(sample)]);
  const ages = history.map((sample) => sample.age).filter((value) => value !== null);
  const most = Math.min(Math.max(10, ...ages) * 1.15, 250);
  const rule = hello.limits.deadline_ms < most ? [hello.limits.deadline_ms] : [];
  drawChart(element('ages'), [{ points: series((sample) => sample.age), colour: '--c0' }], { x: [-10, 0], y: [0, most], xLabel: 's', rules: rule });
  const lines = COLOURS.map((name, joint) => ({ points: series((sample) => sample.velocity[joint]), colour: name, name: JOINTS[joint][1] }));
  const fastest = Math.max(0.5, ...history.flatMap((sample) => sample.velocity.map(Math.abs))) * 1.1;
  drawChart(element('velocities'), lines, { x: [-10, 0], y: [-fastest, fastest], xLabel: 's', rules: [-hello.limits.velocity_rad_s, hello.limits.velocity_rad_s] });
}

function drawAnalysis() {
  if (!analysis) return;
  const style = ['--c0', '--c1'];
  const names = ['continuous', 'as it runs'];
  const lines = (of) => analysis.series.map((one, index) => ({ points: of(one), colour: style[index], name: names[index] }));
  const phases = (one) => {
    let turn = 0, last = null;
    return one.points.map(([omega, re, im]) => {
      let phase = Math.atan2(im, re) * 180 / Math.PI + turn;
      if (last !== null && phase - last > 180) { turn -= 360; phase -= 360; }
      if (last !== null && phase - last < -180) { turn += 360; phase += 360; }
      last = phase;
      return [omega, phase > 90 ? phase - 360 : phase];
    });
  };
  drawChart(element('step'), lines((one) => one.step), { x: [0, 200], y: [0, 1.4], xLabel: 'ms', rules: [1] });
  drawChart(element('bode'), lines((one) => one.points.map((p) => [p[0], p[3]])), { x: [2, 12000], log: true, y: [-60, 60], xLabel: 'rad/s', rules: [0] });
  drawChart(element('phase'), lines(phases), { x: [2, 12000], log: true, y: [-360, 0], yTicks: [-360, -270, -180, -90, 0], xLabel: 'rad/s', rules: [-180] });
  // With its mirror image, of negative frequencies; no line enters the circle of the largest sensitivity.
  const whole = (one) => [...one.points.map((p) => [p[1], p[2]]), ...one.points.map((p) => [p[1], -p[2]]).reverse()];
  const sensitivity = Math.max(...analysis.series.map((one) => one.ms));
  drawChart(element('nyquist'), lines(whole), { x: [-2.6, 1.2], y: [-1.5, 1.5], xLabel: 'real', equal: true,
    circles: [{ x: 0, y: 0, r: 1 }, { x: -1, y: 0, r: 1 / sensitivity, colour: '--bad' }], marks: [[-1, 0]] });
  element('nyquist-note').textContent = `largest sensitivity ${sensitivity.toFixed(3)} (red), gain of 1 (grey)`;
  drawChart(element('nichols'), lines((one) => phases(one).map(([, phase], index) => [phase, one.points[index][3]])), { x: [-300, -60], xTicks: [-270, -225, -180, -135, -90], y: [-40, 60], xLabel: 'degrees', rules: [0], marks: [[-180, 0]] });
  const [continuous, sampled] = analysis.series;
  element('step-note').textContent = `overshoot ${continuous.metrics.overshoot_percent.toFixed(1)} % continuous, ${sampled.metrics.overshoot_percent.toFixed(1)} % as it runs`;
  element('bode-note').textContent = `phase margin ${continuous.phase_margin_deg.toFixed(2)}° continuous, ${sampled.phase_margin_deg.toFixed(2)}° at 4 kHz with one sample of delay; delay margin ${sampled.delay_margin_ms.toFixed(2)} ms`;
}

function draw() {
  requestAnimationFrame(draw);
  const now = performance.now();
  kept.drawGap = Math.max(kept.drawGap, now - drawnAt);
  drawnAt = now;
  const wrong = alarm();
  const isRed = wrong !== null;
  // A refusal must be seen beside an alarm, too.
  const sentences = [now < noticeUntil ? noticeText : null, wrong].filter((sentence) => sentence !== null);
  element('banner').hidden = sentences.length === 0;
  if (sentences.length) element('banner').textContent = sentences.join(' ');
  const mode = isSilent() ? (state && state.body ? 'silent' : 'waiting') : state.mode;
  const status = element('status');
  status.textContent = mode + (operating ? ', you operate' : state && state.operator ? ', another operates' : '');
  status.className = `status ${isRed ? 'bad' : mode === 'engaged' ? 'good' : ''}`;
  document.body.dataset.mode = mode;
  if (isRed && document.body.dataset.alarm !== 'red') { const clock = socket.clock(now); kept.redAt = clock && clock.at; }
  document.body.dataset.alarm = isRed ? 'red' : '';
  if (!state || !state.body || !hello) return;
  views.forEach((view) => view.draw(state, trail, hello.window, isRed));
  drawPanels();
}

// The operator's hand ----------------------------------------------------------------------------------------------

function letGo() {
  operating = false;
  hand.clutch = false; hand.pointer = null; hand.keys.clear();
  element('operate').textContent = 'Operate';
}

function sendHand(local) {
  if (!operating) return;
  const clock = socket.clock(local);
  if (clock) socket.send({ t: 'hand', at: clock.at, b: clock.bound, p: hand.p, clutch: hand.clutch, scale: Number(element('scale').value) });
}

for (const name of ['top', 'front', 'side']) {
  const canvas = element(name);
  const view = views.find((one) => one.name === name);
  const axes = { top: [0, 1], front: [0, 2], side: [1, 2] }[name];
  const moved = (event) => {
    const before = hand.pointer;
    hand.p[axes[0]] += (event.clientX - before.x) / view.scale;
    hand.p[axes[1]] -= (event.clientY - before.y) / view.scale;
    hand.pointer = { x: event.clientX, y: event.clientY, id: before.id };
    sendHand(event.timeStamp);
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (!operating) { socket.send({ t: 'take' }); notice('You operate now if nobody else does: press again.'); return; }
    if (hand.pointer) return;
    canvas.setPointerCapture(event.pointerId);
    hand.pointer = { x: event.clientX, y: event.clientY, id: event.pointerId };
    hand.clutch = true;
    sendHand(performance.now());
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!hand.pointer || hand.pointer.id !== event.pointerId) return;
    const events = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
    (events.length ? events : [event]).forEach(moved);
  });
  for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
    canvas.addEventListener(end, (event) => {
      if (!hand.pointer || hand.pointer.id !== event.pointerId) return;
      hand.pointer = null; hand.clutch = false;
      sendHand(performance.now());
    });
  }
}

addEventListener('keydown', (event) => {
  if (event.code === 'Space' && operating && document.activeElement.tagName !== 'BUTTON') { event.preventDefault(); if (!event.repeat) hand.clutch = true; }
  // Without the arm they scroll the page.
  if (KEYS[event.code] && operating) { event.preventDefault(); hand.keys.add(event.code); }
});
addEventListener('keyup', (event) => {
  if (event.code === 'Space' && !hand.pointer) hand.clutch = false;
  hand.keys.delete(event.code);
});
addEventListener('blur', () => { hand.keys.clear(); hand.clutch = false; hand.pointer = null; });

// Keys and gamepads move the hand steadily; and the page says where the hand is even if nothing moves.
let tickAt = performance.now();
setInterval(() => {
  const now = performance.now(), seconds = Math.min(0.05, (now - tickAt) / 1000);
  tickAt = now;
  if (hand.clutch) for (const key of hand.keys) KEYS[key].forEach((way, axis) => { hand.p[axis] += way * KEY_SPEED_M_S * seconds; });
  const pad = navigator.getGamepads ? [...navigator.getGamepads()].find((one) => one) : null;
  if (pad) {
    const held = pad.buttons[0].pressed;
    if (held !== hand.pad) { hand.pad = held; hand.clutch = held; }
    const live = (value) => (Math.abs(value) < 0.08 ? 0 : value);
    if (held) [live(pad.axes[0]), -live(pad.axes[1]), -live(pad.axes[3] || 0)].forEach((way, axis) => { hand.p[axis] += way * PAD_SPEED_M_S * seconds; });
  }
  sendHand(now);
}, 8);

element('operate').addEventListener('click', () => {
  if (operating) { socket.send({ t: 'leave' }); letGo(); } else socket.send({ t: 'take' });
});
element('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark';
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  drawAnalysis();
});
addEventListener('resize', drawAnalysis);
requestAnimationFrame(draw);
