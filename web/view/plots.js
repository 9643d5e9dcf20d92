// Fields against time: charts of one or more curves, with the same time below all of them.
'use strict';

const POINTS_KEPT = 60000;
// Points of a curve that are drawn; of more the least and the greatest of each column.
const POINTS_DRAWN = 3000;
const CHART_PX = [150, 420];
const CURVE_COLOURS = ['--c0', '--c1', '--c2', '--c3', '--c4', '--c5'];

const plotsView = {
  // [{curves: [{topic, path}], plot: uPlot, box}]
  charts: [],
  // Points of each curve: {xs, ys} by "topic path".
  points: new Map(),
  fields: new Map(),
  dirty: false,

  start() {
    element('plot-topic').addEventListener('change', () => { this.asked = element('plot-topic').value; this.drawFields(); look(); });
    element('plot-add').addEventListener('click', () => {
      const into = element('plot-chart').value;
      const path = element('plot-field').value;
      if (path) this.add(element('plot-topic').value, path, into === '' ? undefined : Number(into));
    });
    element('plot-window').addEventListener('change', () => { this.charts.forEach((chart) => { chart.zoomed = false; }); this.dirty = true; });
  },

  curves() { return this.charts.flatMap((chart) => chart.curves); },

  add(topic, path, into) {
    if (this.curves().length >= 16) { banner('At most 16 curves at a time: close a chart first.'); return; }
    const chart = this.charts[into] || { curves: [], zoomed: false };
    if (!this.charts.includes(chart)) this.charts.push(chart);
    if (!chart.curves.some((curve) => curve.topic === topic && curve.path === path)) chart.curves.push({ topic, path });
    this.rebuild(chart);
    look();
  },

  remove(chart, curve) {
    chart.curves = chart.curves.filter((one) => one !== curve);
    if (chart.curves.length) { this.rebuild(chart); } else {
      chart.plot.destroy(); chart.box.remove();
      this.charts = this.charts.filter((one) => one !== chart);
      this.resize();
    }
    for (const key of [...this.points.keys()]) if (!this.curves().some((one) => `${one.topic} ${one.path}` === key)) this.points.delete(key);
    this.drawChoices();
    look();
  },

  handlePoints(head, values) {
    const key = `${head.topic} ${head.path}`;
    if (head.whole || !this.points.has(key)) this.points.set(key, { xs: [], ys: [] });
    const { xs, ys } = this.points.get(key);
    for (let index = 0; index < head.count; index += 1) {
      const at = values.getFloat64(index * 16, true);
      // Samples of several publishers come in the order of their arrival.
      if (xs.length && at < xs[xs.length - 1]) continue;
      xs.push(at);
      ys.push(values.getFloat64(index * 16 + 8, true));
    }
    const over = xs.length - POINTS_KEPT;
    if (over > 0) { xs.splice(0, over); ys.splice(0, over); }
    this.dirty = true;
  },

  // A topic's fields, as its newest sample has them.
  handleSample(message) {
    if (message.tree === undefined) return;
    this.fields.set(message.topic, numbersIn(message.tree, '', []));
    if (message.topic === element('plot-topic').value) this.drawFields();
  },

  drawChoices() {
    const choose = element('plot-topic'), names = catalog.topics.filter((topic) => topic.live).map((topic) => topic.name);
    if (choose.options.length !== names.length || [...choose.options].some((option, index) => option.value !== names[index])) {
      const before = choose.value;
      choose.replaceChildren(...names.map((name) => new Option(name, name)));
      if (names.includes(before)) choose.value = before;
      this.drawFields();
    }
    const into = element('plot-chart'), before = into.value;
    into.replaceChildren(new Option('a new chart', ''), ...this.charts.map((_, index) => new Option(`chart ${index + 1}`, String(index))));
    if (before !== '' && this.charts[before]) into.value = before;
    element('plots-empty').hidden = this.charts.length > 0;
  },

  drawFields() {
    const choose = element('plot-field'), paths = ['@age_ms', '@bound_ms', ...(this.fields.get(element('plot-topic').value) || [])];
    const labels = { '@age_ms': 'age, ms', '@bound_ms': 'bound, ms' };
    if ([...choose.options].map((option) => option.value).join() === paths.join()) return;
    const before = choose.value;
    choose.replaceChildren(...paths.map((path) => new Option(labels[path] || path, path)));
    if (paths.includes(before)) choose.value = before;
  },

  // The time that is shown, ms.
  window() {
    const seconds = Number(element('plot-window').value), [low, high] = timeline.bounds();
    const now = timeline.now();
    // A recording that is shorter than that fills the chart.
    if (timeline.mode === 'file') return seconds === 0 || seconds * 1000 >= high - low ? [low, high] : [Math.max(low, now - seconds * 500), Math.max(low, now - seconds * 500) + seconds * 1000];
    return seconds === 0 ? [low, now] : [now - seconds * 1000, now];
  },

  // Points of a curve within the window, few enough to draw, and none lost that sticks out.
  within({ topic, path }, [low, high]) {
    const { xs, ys } = this.points.get(`${topic} ${path}`) || { xs: [], ys: [] };
    const from = Math.max(0, lowerBound(xs, low) - 1), to = Math.min(xs.length, lowerBound(xs, high) + 1);
    const count = to - from, found = { xs: [], ys: [] };
    const put = (index) => { found.xs.push(xs[index] / 1000); found.ys.push(ys[index]); };
    if (count <= POINTS_DRAWN) { for (let index = from; index < to; index += 1) put(index); return found; }
    const columns = POINTS_DRAWN / 2;
    for (let column = 0; column < columns; column += 1) {
      const begin = from + Math.floor(column * count / columns), end = from + Math.floor((column + 1) * count / columns);
      let least = begin, most = begin;
      for (let index = begin; index < end; index += 1) { if (ys[index] < ys[least]) least = index; if (ys[index] > ys[most]) most = index; }
      put(Math.min(least, most));
      if (least !== most) put(Math.max(least, most));
    }
    return found;
  },

  data(chart, window) {
    const parts = chart.curves.map((curve) => { const { xs, ys } = this.within(curve, window); return [xs, ys]; });
    return uPlot.join(parts);
  },

  rebuild(chart) {
    if (!chart.box) {
      chart.box = document.createElement('div');
      chart.box.className = 'chart';
      element('charts').append(chart.box);
    }
    if (chart.plot) chart.plot.destroy();
    chart.box.replaceChildren(this.bar(chart));
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--grid'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 } };
    const series = chart.curves.map((curve, index) => ({ label: curveName(curve), stroke: colour(CURVE_COLOURS[index % 6]), width: 1.5, points: { show: false }, spanGaps: true, dash: index > 5 ? [6, 3] : undefined }));
    const setScale = (plot, key) => { if (key === 'x') chart.shown = [plot.scales.x.min, plot.scales.x.max]; };
    // Ticks stand at whole seconds of the wall's clock, not of the server's.
    const splits = (_, axis, low, high, step) => {
      const offset = timeline.wallOffset() / 1000, found = [];
      for (let count = Math.ceil((low + offset) / step); count * step <= high + offset; count += 1) found.push(count * step - offset);
      return found;
    };
    const times = (_, ticks, axis, space, step) => ticks.map((tick) => timeline.clockText(tick * 1000, step >= 1 ? 0 : step >= 0.1 ? 1 : 3));
    chart.plot = new uPlot({
      ...this.size(chart), legend: { show: false },
      scales: { x: { time: false } },
      axes: [{ ...axis, size: 34, space: 120, splits, values: times }, { ...axis, size: 64 }],
      series: [{ label: 'time' }, ...series],
      cursor: { sync: { key: 'time' }, drag: { x: true, y: false } },
      hooks: {
        setScale: [setScale],
        setSelect: [() => { chart.zoomed = true; }],
        setCursor: [() => this.drawValues(chart)],
        draw: [(plot) => this.drawMarks(plot)],
      },
    }, [[], ...chart.curves.map(() => [])], chart.box);
    chart.plot.over.addEventListener('dblclick', () => { chart.zoomed = false; this.dirty = true; });
    chart.plot.root.setAttribute('role', 'img');
    chart.plot.root.setAttribute('aria-label', chart.curves.map(curveName).join(', '));
    this.dirty = true;
    this.drawChoices();
    this.resize();
  },

  bar(chart) {
    const bar = document.createElement('div');
    bar.className = 'bar';
    chart.curves.forEach((curve, index) => {
      const chip = bar.appendChild(document.createElement('span'));
      chip.className = 'chip';
      const dot = chip.appendChild(document.createElement('i'));
      dot.style.background = colour(CURVE_COLOURS[index % 6]);
      chip.append(curveName(curve));
      chip.appendChild(document.createElement('b')).title = 'under the pointer, or now';
      const close = chip.appendChild(document.createElement('button'));
      close.textContent = '×';
      close.setAttribute('aria-label', `remove ${curveName(curve)}`);
      close.addEventListener('click', () => this.remove(chart, curve));
    });
    const space = bar.appendChild(document.createElement('span'));
    space.className = 'spread';
    const kinds = bar.appendChild(document.createElement('span'));
    kinds.className = 'kinds';
    for (const kind of ['PNG', 'SVG', 'CSV']) {
      const button = kinds.appendChild(document.createElement('button'));
      button.textContent = kind;
      button.dataset.kind = kind;
      button.addEventListener('click', () => this.export(chart, kind));
    }
    return bar;
  },

  // Of each curve the value under the pointer; else that of the moment that is shown, live the last.
  drawValues({ plot, box }) {
    if (!plot) return;
    const at = plot.cursor.idx ?? (timeline.mode === 'file' ? lowerBound(plot.data[0], timeline.now() / 1000 + 1e-6) - 1 : null);
    [...box.querySelectorAll('.chip b')].forEach((place, index) => {
      const values = plot.data[index + 1] || [];
      let from = at === null || at === undefined ? values.length - 1 : at;
      while (from >= 0 && !known(values[from])) from -= 1;
      const text = from < 0 ? '–' : String(Number(values[from].toPrecision(5)));
      if (place.textContent !== text) place.textContent = text;
    });
  },

  drawMarks(plot) {
    const c = plot.ctx, { left, top, width, height } = plot.bbox;
    const rule = (at, style, name) => {
      const x = plot.valToPos(at / 1000, 'x', true);
      if (x < left || x > left + width) return;
      c.save();
      c.strokeStyle = style; c.fillStyle = style; c.lineWidth = devicePixelRatio; c.setLineDash([4, 3]);
      c.beginPath(); c.moveTo(x, top); c.lineTo(x, top + height); c.stroke();
      c.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      c.fillText(name, x + 3, top + 12 * devicePixelRatio);
      c.restore();
    };
    for (const mark of timeline.marks) rule(mark.at, palette.mark, mark.name);
    if (timeline.mode === 'file') rule(timeline.now(), palette.line, '');
  },

  draw() {
    if (element('view-plots').hidden) return;
    this.drawChoices();
    const window = this.window();
    for (const chart of this.charts) {
      if (chart.zoomed) {
        chart.plot.setData(this.data(chart, [chart.shown[0] * 1000, chart.shown[1] * 1000]), false);
        chart.plot.redraw();
        this.drawValues(chart);
        continue;
      }
      const data = this.data(chart, window);
      chart.plot.batch(() => {
        chart.plot.setData(data, true);
        chart.plot.setScale('x', { min: window[0] / 1000, max: window[1] / 1000 });
      });
      chart.box.dataset.points = String(data[0].length);
      this.drawValues(chart);
    }
    this.dirty = false;
  },

  // The chosen topic is what somebody wants to plot.
  open() {
    this.resize();
    this.drawChoices();
    if (inspector.topic) { element('plot-topic').value = inspector.topic; this.drawFields(); }
  },

  // A few charts share the height that there is; many are scrolled.
  size(chart) {
    const rest = 64, above = element('charts').offsetTop - element('view-plots').offsetTop;
    const height = (element('view-plots').clientHeight - above) / Math.max(1, this.charts.length) - rest;
    return { width: Math.max(280, chart.box.clientWidth - 22), height: Math.round(Math.min(CHART_PX[1], Math.max(CHART_PX[0], height))) };
  },

  resize() {
    for (const chart of this.charts) {
      const size = this.size(chart);
      if (size.width !== chart.plot.width || size.height !== chart.plot.height) chart.plot.setSize(size);
    }
  },

  export(chart, kind) {
    const name = chart.curves.map(curveName).join(' ').replace(/[^\w.-]+/g, '_').replace(/^_|_$/g, '').slice(0, 60) || 'chart';
    if (kind === 'PNG') { exportCanvas(name, chart.plot.ctx.canvas); return; }
    const range = chart.shown ? chart.shown.map((second) => second * 1000) : this.window();
    if (kind === 'SVG') { download(`${name}.svg`, 'image/svg+xml', this.svg(chart, range)); return; }
    // Every point, not those that are drawn.
    const rows = chart.curves.flatMap((curve) => {
      const { xs, ys } = this.points.get(`${curve.topic} ${curve.path}`) || { xs: [], ys: [] };
      return xs.map((x, index) => [curve.topic, curve.path, x, ys[index]]).filter((row) => row[2] >= range[0] && row[2] <= range[1]);
    });
    download(`${name}.csv`, 'text/csv', csv([['topic', 'field', 'source_time_ms', 'value'], ...rows]));
  },

  svg(chart, range) {
    const width = 900, height = 320, left = 70, right = 20, top = 20, bottom = 40;
    const [low, high] = range.map((at) => at / 1000), scale = chart.plot.scales.y;
    const px = (x) => left + (x - low) / (high - low || 1) * (width - left - right);
    const py = (y) => height - bottom - (y - scale.min) / (scale.max - scale.min || 1) * (height - top - bottom);
    const text = (x, y, content, anchor, fill) => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${fill}" font-size="12" font-family="sans-serif">${content.replace(/[<&>]/g, '')}</text>`;
    const grid = ticks(scale.min, scale.max, 5).filter((y) => y <= scale.max).map((y) => `<line x1="${left}" x2="${width - right}" y1="${py(y).toFixed(1)}" y2="${py(y).toFixed(1)}" stroke="${colour('--grid')}"/>${text(left - 6, py(y) + 4, String(y), 'end', colour('--muted'))}`);
    const times = [0, 0.25, 0.5, 0.75, 1].map((share) => text(left + share * (width - left - right), height - bottom + 18, timeline.clockText((low + share * (high - low)) * 1000), 'middle', colour('--muted')));
    const lines = chart.curves.map((curve, index) => {
      const { xs, ys } = this.within(curve, range);
      const path = xs.map((x, at) => `${at ? 'L' : 'M'}${px(x).toFixed(1)} ${py(ys[at]).toFixed(1)}`).join('');
      return `<path d="${path}" fill="none" stroke="${colour(CURVE_COLOURS[index % 6])}" stroke-width="1.5"/>${text(left + 6, top + 14 + 16 * index, curveName(curve), 'start', colour(CURVE_COLOURS[index % 6]))}`;
    });
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect width="100%" height="100%" fill="${colour('--paper')}"/>${[...grid, ...times, ...lines].join('')}</svg>`;
  },
};

const curveName = ({ topic, path }) => `${topic} ${path === '@age_ms' ? 'age, ms' : path === '@bound_ms' ? 'bound, ms' : path}`;

function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] < value) low = middle + 1; else high = middle; }
  return low;
}
