// The table of topics. Only the rows that can be seen exist, so that 240 topics cost what 30 do.
'use strict';

const ROW_PX = 35;
const SPARK_FRAMES = 160;
// As in view.css.
const SPARK_PX = [132, 26];
// Of services and actions, as ROS 2 names them: not what somebody looks for first.
const isOfRequests = (name) => /^r[qr]\/|\/_action\//.test(name);
const HEADS = [
  { key: 'name', text: 'topic', first: 1 },
  { key: 'spark', text: 'age over 40 s', wide: true },
  { key: 'p50', text: 'age p50 ±', first: -1 },
  { key: 'p99', text: 'p99', first: -1 },
  { key: 'rate', text: 'rate', first: -1 },
  { key: 'loss', text: 'loss', first: -1 },
  { key: 'deadline', text: 'deadline', first: -1, wide: true },
  { key: 'bytes', text: 'bytes/s', first: -1, wide: true },
  { key: 'ends', text: 'pub → sub', wide: true },
];

const topicsView = {
  order: { key: 'name', way: 1 },
  filter: '',
  chosen: null,
  listed: [],
  pool: [],

  start() {
    element('heads').replaceChildren(...HEADS.map((head) => {
      const cell = document.createElement('th');
      cell.scope = 'col';
      cell.textContent = head.text;
      cell.dataset.key = head.key;
      cell.className = `col-${head.key}${head.wide ? ' wide-only' : ''}`;
      if (head.first) {
        cell.tabIndex = 0;
        const sort = () => {
          this.order = this.order.key === head.key ? { key: head.key, way: -this.order.way } : { key: head.key, way: head.first };
          this.draw();
        };
        cell.addEventListener('click', sort);
        cell.addEventListener('keydown', (event) => { if (event.key === 'Enter') sort(); });
      }
      return cell;
    }));
    element('rows').addEventListener('scroll', () => this.drawRows());
    element('filter').addEventListener('input', () => { this.filter = element('filter').value.toLowerCase(); this.draw(); layout.write(); });
    element('requests').addEventListener('change', () => this.draw());
    element('table').addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key];
      // In the heads Enter sorts.
      if (!step && (event.key !== 'Enter' || event.target.scope === 'col')) return;
      event.preventDefault();
      const at = this.listed.findIndex((topic) => topic.name === this.chosen);
      const next = this.listed[Math.min(this.listed.length - 1, Math.max(0, at + (step || 0)))];
      if (next) { this.choose(next.name); this.reveal(next.name); }
    });
  },

  choose(name) {
    this.chosen = name;
    inspector.open(name);
    this.drawRows();
  },

  reveal(name) {
    const top = this.listed.findIndex((topic) => topic.name === name) * ROW_PX, box = element('rows');
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + 3 * ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * ROW_PX - box.clientHeight;
  },

  // Sorted and filtered.
  list() {
    const { key, way } = this.order;
    const value = (topic) => {
      const figure = timeline.value(topic.id, COLUMN[key]);
      return Number.isNaN(figure) ? -Infinity : figure;
    };
    const fits = (topic) => !this.filter || topic.name.toLowerCase().includes(this.filter) || topic.type.toLowerCase().includes(this.filter);
    const isShown = (topic) => this.filter || element('requests').checked || !isOfRequests(topic.name);
    element('requests-label').hidden = !catalog.topics.some((topic) => isOfRequests(topic.name));
    this.listed = catalog.topics.filter((topic) => fits(topic) && isShown(topic));
    if (key === 'name') this.listed.sort((a, b) => way * a.name.localeCompare(b.name, 'en', { numeric: true }));
    else this.listed.sort((a, b) => way * (value(a) - value(b)) || a.name.localeCompare(b.name));
  },

  draw() {
    this.list();
    let rate = 0, bytes = 0;
    for (const topic of catalog.topics) {
      rate += timeline.value(topic.id, COLUMN.rate) || 0;
      bytes += timeline.value(topic.id, COLUMN.bytes) || 0;
    }
    const left = catalog.left_out ? `, ${catalog.left_out} more are not followed` : '';
    element('totals').textContent = !catalog.topics.length ? 'no topic is published here yet; other nodes must use the same domain and key' : `${this.listed.length} of ${catalog.topics.length} topics${left}, ${rate.toFixed(0)} samples/s, ${bytesText(bytes)}/s`;
    for (const cell of element('heads').children) {
      const way = cell.dataset.key === this.order.key ? (this.order.way > 0 ? 'ascending' : 'descending') : 'none';
      cell.setAttribute('aria-sort', way);
    }
    this.drawRows();
  },

  drawRows() {
    const box = element('rows'), body = element('body');
    const from = Math.max(0, Math.floor(box.scrollTop / ROW_PX) - 3);
    const to = Math.min(this.listed.length, from + Math.ceil(box.clientHeight / ROW_PX) + 6);
    while (this.pool.length < to - from) this.pool.push(this.row());
    const space = (rows) => {
      const row = document.createElement('tr');
      row.className = 'space';
      row.setAttribute('aria-hidden', 'true');
      row.appendChild(document.createElement('td')).style.height = `${rows * ROW_PX}px`;
      return row;
    };
    const shown = this.pool.slice(0, to - from);
    // The same rows again cost nothing.
    const key = `${from} ${to} ${this.listed.length}`;
    if (this.key !== key) {
      body.replaceChildren(space(from), ...shown.map((row) => row.element), space(this.listed.length - to));
      body.parentElement.setAttribute('aria-rowcount', String(this.listed.length));
      this.key = key;
    }
    shown.forEach((row, index) => this.fill(row, this.listed[from + index], from + index));
    const active = shown.find((row) => row.topic.name === this.chosen);
    if (active) element('table').setAttribute('aria-activedescendant', active.element.id); else element('table').removeAttribute('aria-activedescendant');
    // A phone has no room for lines.
    if (innerWidth > 760) shown.forEach((row) => this.spark(row));
  },

  row() {
    const line = document.createElement('tr');
    const cells = HEADS.map((head) => {
      const cell = line.appendChild(document.createElement('td'));
      if (head.wide) cell.className = 'wide-only';
      return cell;
    });
    const name = cells[0].appendChild(document.createElement('span'));
    const type = cells[0].appendChild(document.createElement('span'));
    type.className = 'type';
    const canvas = cells[1].appendChild(document.createElement('canvas'));
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', 'age');
    const row = { element: line, cells, name, type, canvas, topic: null };
    line.id = `row-${this.pool.length}`;
    line.addEventListener('click', () => { if (row.topic) this.choose(row.topic.name); });
    return row;
  },

  fill(row, topic, index) {
    row.topic = topic;
    const value = (column) => timeline.value(topic.id, COLUMN[column]);
    row.element.setAttribute('aria-rowindex', String(index + 1));
    row.element.setAttribute('aria-selected', String(topic.name === this.chosen));
    row.element.className = `${topic.name === this.chosen ? 'chosen' : ''} ${topic.live ? '' : 'gone'}`;
    row.name.textContent = topic.name;
    row.type.textContent = topic.type;
    row.cells[0].title = `${topic.name} ${topic.type}`;
    const bound = value('bound'), p50 = value('p50'), p99 = value('p99');
    // Too few for a percentile: what is known instead, named as such.
    row.cells[2].textContent = known(p50) ? ageText(p50, bound) : known(value('max')) ? `max ${ageText(value('max'), bound)}` : '–';
    row.cells[3].textContent = known(p99) ? timeText(p99) : known(p50) ? `max ${timeText(value('max'))}` : '–';
    row.cells[4].textContent = known(value('rate')) ? `${value('rate').toFixed(1)} Hz` : 'gone';
    const loss = value('loss');
    row.cells[5].textContent = known(loss) ? `${(loss * 100).toFixed(loss > 0 && loss < 0.001 ? 3 : 2)} %` : '–';
    row.cells[5].classList.toggle('bad-figure', loss > 0.001);
    const missed = value('deadline');
    row.cells[6].textContent = known(missed) ? String(missed) : '–';
    row.cells[6].classList.toggle('bad-figure', missed > 0);
    row.cells[6].title = known(missed) ? 'periods of the offered deadline without a sample, and samples older than it' : 'the publisher offers no deadline';
    row.cells[7].textContent = bytesText(value('bytes'));
    row.cells[8].textContent = `${topic.writers.length} → ${topic.readers.length}`;
  },

  // Median line, the largest age as a light line, the bound as a band around the median; all from 0 up.
  // The size is known: asking for it would lay out the table anew for each row.
  spark({ canvas, topic }) {
    const [width, height] = SPARK_PX, ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio)) [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const c = canvas.getContext('2d'), bound = timeline.value(topic.id, COLUMN.bound);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const median = timeline.series(topic.id, COLUMN.frame, SPARK_FRAMES);
    const highest = timeline.series(topic.id, COLUMN.frameMax, SPARK_FRAMES);
    // A single outlier must not flatten the rest: what is above the 95th percentile leaves the picture at its top.
    const sorted = highest.map(([, value]) => value).filter(known).sort((a, b) => a - b);
    const most = Math.max(1e-3, (sorted[Math.floor(sorted.length * 0.95)] || 0) * 1.3);
    const end = timeline.now();
    const px = (at) => width - (end - at) / 40000 * width, py = (value) => height - 2 - Math.min(1, value / most) * (height - 4);
    const line = (points, style, thickness) => {
      c.strokeStyle = style; c.lineWidth = thickness; c.beginPath();
      let last = -Infinity;
      for (const [at, value] of points) {
        // A frame without a sample is no gap for a slow topic; 3 s are.
        if (!known(value)) continue;
        if (at - last < 3000) c.lineTo(px(at), py(value)); else { c.moveTo(px(at) - 1, py(value)); c.lineTo(px(at), py(value)); }
        last = at;
      }
      c.stroke();
    };
    if (bound > 0) {
      c.fillStyle = palette.band;
      for (const [at, value] of median) if (known(value)) c.fillRect(px(at) - 1, py(value + bound), 2, Math.max(1, py(value - bound) - py(value + bound)));
    }
    line(highest, palette.light, 1);
    line(median, palette.line, 1.5);
    const drawn = median.filter(([, value]) => known(value)).length;
    canvas.dataset.points = String(drawn);
    canvas.setAttribute('aria-label', `age of ${topic.name} over 40 s, at most ${timeText(sorted.at(-1))}`);
  },

  exportCsv() {
    const rows = this.listed.map((topic) => {
      const value = (column) => timeline.value(topic.id, COLUMN[column]);
      return [topic.name, topic.type, ...['rate', 'p50', 'p99', 'max', 'bound', 'loss', 'missed', 'deadline', 'bytes', 'samples'].map(value), topic.writers.length, topic.readers.length];
    });
    const heads = ['topic', 'type', 'rate_hz', 'age_p50_ms', 'age_p99_ms', 'age_max_ms', 'bound_ms', 'loss', 'missed', 'deadline_missed', 'bytes_per_s', 'samples', 'publishers', 'subscribers'];
    download('topics.csv', 'text/csv', csv([heads, ...rows]));
  },
};
