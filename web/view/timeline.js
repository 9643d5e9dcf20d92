// Time: the figures of the last minutes, the moment that is shown, pause, marks.
'use strict';

const HISTORY_MS = 300000;
// The order of `Figures::row` of crates/view.
const COLUMN = { id: 0, rate: 1, p50: 2, p99: 3, max: 4, bound: 5, loss: 6, missed: 7, deadline: 8, bytes: 9, samples: 10, frame: 11, frameMax: 12 };
const COLUMNS = 13;

class Timeline {
  constructor() {
    // {at, wall, rows: Float64Array, place: Map of a topic's number to its row}
    this.frames = [];
    this.mode = 'live';
    this.range = null;
    // The moment that is shown, ms of the server's clock; null follows.
    this.cursor = null;
    this.playing = true;
    this.marks = [];
  }

  handleState(message) {
    const rows = new Float64Array(message.topics.length * COLUMNS);
    const place = new Map();
    message.topics.forEach((row, index) => {
      place.set(row[0], index);
      row.forEach((value, column) => { rows[index * COLUMNS + column] = value === null ? NaN : value; });
    });
    // A recording that went back begins anew.
    const last = this.frames.at(-1);
    if (last && message.at < last.at) this.frames = [];
    this.frames.push({ at: message.at, wall: message.wall, rows, place });
    while (this.frames.length && message.at - this.frames[0].at > HISTORY_MS) this.frames.shift();
    if (this.mode === 'file') this.playing = message.playing;
  }

  // The frame of the moment that is shown.
  frame() {
    if (this.mode === 'file' || this.cursor === null) return this.frames.at(-1) || null;
    return this.frames[this.indexAt(this.cursor)] || null;
  }

  indexAt(at) {
    let low = 0, high = this.frames.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.frames[middle].at <= at) low = middle; else high = middle - 1;
    }
    return low;
  }

  // ms of the server's clock.
  now() {
    const frame = this.frame();
    return frame ? frame.at : 0;
  }

  // Wall time of a moment, as text.
  clockText(at, digits = 1) {
    const frame = this.frame();
    if (!frame) return '–';
    // A moment of whole milliseconds must not become one less.
    const date = new Date(Math.round(frame.wall + (at - frame.at)));
    const two = (value) => String(value).padStart(2, '0');
    const part = digits ? `.${String(date.getMilliseconds()).padStart(3, '0').slice(0, digits)}` : '';
    return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}${part}`;
  }

  // Wall time minus the server's clock, ms.
  wallOffset() {
    const frame = this.frame();
    return frame ? frame.wall - frame.at : 0;
  }

  isFollowing() { return this.mode === 'file' ? this.playing : this.cursor === null; }

  pause(isPaused) {
    if (this.mode === 'file') {
      this.playing = !isPaused;
      socket.send({ t: 'play', on: !isPaused, rate: Number(element('rate').value) });
    } else this.cursor = isPaused ? this.now() : null;
  }

  seek(at) {
    if (this.mode === 'file') { socket.send({ t: 'seek', at }); return; }
    const last = this.frames.at(-1);
    this.cursor = last && at >= last.at ? null : at;
  }

  // A moment that was chosen stays, also if nothing newer has come; `seek` to the end follows.
  hold(at) {
    if (this.mode === 'file') this.seek(at); else this.cursor = at;
  }

  bounds() {
    if (this.mode === 'file' && this.range) return this.range;
    if (!this.frames.length) return [0, 1];
    return [this.frames[0].at, this.frames.at(-1).at];
  }

  // One figure of a topic over the frames before the moment shown: [[at, value]…].
  series(id, column, count) {
    const end = this.mode === 'file' || this.cursor === null ? this.frames.length : this.indexAt(this.cursor) + 1;
    const found = [];
    for (let index = Math.max(0, end - count); index < end; index += 1) {
      const { at, rows, place } = this.frames[index];
      const row = place.get(id);
      if (row !== undefined) found.push([at, rows[row * COLUMNS + column]]);
    }
    return found;
  }

  value(id, column) {
    const frame = this.frame();
    const row = frame ? frame.place.get(id) : undefined;
    return row === undefined ? NaN : frame.rows[row * COLUMNS + column];
  }

  mark() {
    const at = this.now();
    if (this.marks.length < 26) this.marks.push({ at, name: String.fromCharCode(65 + this.marks.length) });
  }
}

const timeline = new Timeline();

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

// A time in ms as text with three digits and its unit.
function timeText(value) {
  if (!known(value)) return '–';
  const size = Math.abs(value);
  const digits = (number) => (Math.abs(number) >= 100 ? number.toFixed(0) : Math.abs(number) >= 10 ? number.toFixed(1) : number.toFixed(2));
  if (size >= 1000) return `${digits(value / 1000)} s`;
  if (size >= 1) return `${digits(value)} ms`;
  return `${digits(value * 1000)} µs`;
}

// With its bound; exact if it is 0.
function ageText(value, bound) {
  if (!known(value)) return '–';
  if (!known(bound)) return `${timeText(value)} ±?`;
  if (bound === 0) return timeText(value);
  const [unit, name] = [[1000, 's'], [1, 'ms'], [0.001, 'µs']].find(([size]) => Math.max(Math.abs(value), bound) >= size) || [0.001, 'µs'];
  const most = Math.max(Math.abs(value), bound) / unit, places = most >= 100 ? 0 : most >= 10 ? 1 : 2;
  // Both in one unit, the bound rounded up; one that would vanish in it has its own.
  const rounded = Math.ceil(bound / unit * 10 ** places - 1e-9) / 10 ** places;
  return bound / unit * 10 ** places < 0.5 ? `${timeText(value)} ± ${timeText(bound)}` : `${(value / unit).toFixed(places)} ± ${rounded.toFixed(places)} ${name}`;
}

function bytesText(value) {
  if (!known(value)) return '–';
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} MB`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)} kB`;
  return `${value.toFixed(0)} B`;
}

function drawTimeline() {
  const [low, high] = timeline.bounds();
  const slider = element('slider');
  const at = timeline.now();
  if (document.activeElement !== slider || timeline.isFollowing()) slider.value = String(high > low ? (at - low) / (high - low) : 1);
  const text = timeline.mode === 'file' ? `${timeline.clockText(at)}  ${((at - low) / 1000).toFixed(1)} of ${((high - low) / 1000).toFixed(1)} s` : timeline.isFollowing() ? timeline.clockText(at) : `${timeline.clockText(at)}  ${((at - high) / 1000).toFixed(1)} s`;
  element('time').textContent = text;
  slider.setAttribute('aria-valuetext', text);
  const paused = !timeline.isFollowing();
  element('pause').textContent = !paused ? 'Pause' : timeline.mode === 'file' ? 'Play' : 'Resume';
  element('pause').setAttribute('aria-pressed', String(paused));
  element('live').hidden = timeline.mode === 'file' || !paused;
  element('rate-label').hidden = timeline.mode !== 'file';
}

function drawMarks() {
  const buttons = timeline.marks.map((mark) => {
    const button = document.createElement('button');
    button.textContent = mark.name;
    button.title = timeline.clockText(mark.at);
    button.setAttribute('aria-label', `mark ${mark.name} at ${button.title}`);
    button.addEventListener('click', () => timeline.hold(mark.at));
    return button;
  });
  element('marks').replaceChildren(...buttons);
}
