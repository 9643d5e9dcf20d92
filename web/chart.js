// Small charts on a canvas: lines over time or over anything, with axes, in the page's colours.
'use strict';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Makes the canvas as fine as the screen; returns its context and size in CSS pixels.
function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

function ticks(low, high, count) {
  const span = high - low || 1;
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) found.push(Number(tick.toPrecision(12)));
  return found;
}

// lines: [{points: [[x, y]…], colour, width, name}], options: {x: [low, high], y: [low, high], xTicks, yTicks, log, xLabel, yLabel, rules, circles, marks, equal}
function drawChart(canvas, lines, options) {
  const { context: c, width, height } = prepared(canvas);
  const left = 42, right = width - 8, top = lines.some((line) => line.name) ? 22 : 8, bottom = height - 30;
  const mapX = options.log ? Math.log10 : (value) => value;
  let [x0, x1] = options.x.map(mapX), [y0, y1] = options.y;
  if (options.equal) {
    // One unit is as long across as it is up: circles are round, and the axis that has room shows more.
    const unit = Math.min((right - left) / (x1 - x0), (bottom - top) / (y1 - y0));
    const widened = (low, high, pixels) => [(low + high - pixels / unit) / 2, (low + high + pixels / unit) / 2];
    [x0, x1] = widened(x0, x1, right - left);
    [y0, y1] = widened(y0, y1, bottom - top);
  }
  const px = (x) => left + (mapX(x) - x0) / (x1 - x0) * (right - left);
  const py = (y) => bottom - (y - y0) / (y1 - y0) * (bottom - top);
  c.font = '11px system-ui, sans-serif';
  c.lineWidth = 1;
  c.strokeStyle = colour('--line');
  c.fillStyle = colour('--muted');
  c.textAlign = 'right'; c.textBaseline = 'middle';
  for (const y of options.yTicks || ticks(y0, y1, 4)) {
    c.beginPath(); c.moveTo(left, py(y)); c.lineTo(right, py(y)); c.stroke();
    c.fillText(String(y), left - 5, py(y));
  }
  c.textAlign = 'center'; c.textBaseline = 'top';
  const across = options.log
    ? Array.from({ length: Math.floor(x1) - Math.ceil(x0) + 1 }, (_, index) => 10 ** (Math.ceil(x0) + index))
    : options.xTicks || ticks(x0, x1, 5);
  for (const x of across) {
    c.beginPath(); c.moveTo(px(x), top); c.lineTo(px(x), bottom); c.stroke();
    const label = String(x), half = c.measureText(label).width / 2;
    c.fillText(label, Math.min(px(x), width - half - 1), bottom + 4);
  }
  c.fillText(options.xLabel || '', (left + right) / 2, bottom + 16);
  c.save();
  c.beginPath(); c.rect(left, top, right - left, bottom - top); c.clip();
  for (const rule of options.rules || []) {
    c.strokeStyle = colour('--bad'); c.setLineDash([5, 4]);
    c.beginPath(); c.moveTo(left, py(rule)); c.lineTo(right, py(rule)); c.stroke();
    c.setLineDash([]);
  }
  for (const circle of options.circles || []) {
    c.strokeStyle = colour(circle.colour || '--muted'); c.setLineDash([3, 3]);
    c.beginPath();
    c.ellipse(px(circle.x), py(circle.y), circle.r / (x1 - x0) * (right - left), circle.r / (y1 - y0) * (bottom - top), 0, 0, 7);
    c.stroke(); c.setLineDash([]);
  }
  for (const line of lines) {
    c.strokeStyle = line.colour.startsWith('--') ? colour(line.colour) : line.colour;
    c.lineWidth = line.width || 1.6; c.lineJoin = 'round';
    c.beginPath();
    line.points.forEach(([x, y], index) => (index ? c.lineTo(px(x), py(y)) : c.moveTo(px(x), py(y))));
    c.stroke();
  }
  for (const mark of options.marks || []) {
    c.fillStyle = colour('--bad');
    c.beginPath(); c.arc(px(mark[0]), py(mark[1]), 4, 0, 7); c.fill();
  }
  c.restore();
  // Names of the lines, in their colours, above the picture.
  c.textAlign = 'left'; c.textBaseline = 'middle';
  let at = left;
  for (const line of lines.filter((one) => one.name)) {
    c.fillStyle = line.colour.startsWith('--') ? colour(line.colour) : line.colour;
    c.fillRect(at, 8, 10, 3);
    c.fillText(line.name, at + 13, 10);
    at += 13 + c.measureText(line.name).width + 9;
  }
  canvas.dataset.points = String(lines.reduce((sum, line) => sum + line.points.length, 0));
}
