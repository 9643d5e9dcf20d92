// Drawing for every page: figures for people, and one plot. Axes, zoom and cursor are uPlot's; the
// marks are drawn here, so that one routine draws every chart, finds the point under the cursor and
// counts what it drew.
//
// A chart is { x, y, marks, lines, side }: two scales, marks in data coordinates, and named lines across
// the scale that `side` names. A mark is { cell, kind, xs, ys, low, say }; its cell has an id, a label, a
// colour and a dash.
const noctulePlot = (() => {
  "use strict";

  const root = document.documentElement;
  const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2, 1, 2]];
  // For the browser test: marks there were, and marks that reached the canvas.
  window.noctule = { charts: {}, errors: [] };
  window.addEventListener("error", (event) => window.noctule.errors.push(String(event.message)));

  // ---- figures for people -------------------------------------------------------------------

  const three = (x) => {
    if (x === 0) return "0";
    const decimals = Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x)))));
    const text = x.toFixed(decimals);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  };
  const withUnit = (x, units) => {
    const [scale, unit] = units.findLast(([scale]) => Math.abs(x) >= scale * 0.9995) ?? units[0];
    return `${three(x / scale)} ${unit}`;
  };
  const duration = (ns) => ns == null ? "–" : ns === 0 ? "0" : withUnit(ns, [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]);
  const seconds = (s) => duration(s * 1e9);
  const size = (bytes) => withUnit(bytes, [[1, "B"], [1e3, "kB"], [1e6, "MB"]]);
  const rate = (hz) => withUnit(hz, [[1, "Hz"], [1e3, "kHz"], [1e6, "MHz"]]);
  const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");
  const logAxis = (label, text) => ({ log: true, label, text });
  const linearAxis = (label, text) => ({ log: false, label, text });

  // ---- plot ---------------------------------------------------------------------------------

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function extent(values, axis) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (axis.log && !(value > 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return axis.log ? [1, 10] : [0, 1];
    if (axis.log) return [low / 1.25, high * 1.25];
    if (axis.asinh) return [Math.min(low * 1.25, -axis.asinh / 4), Math.max(high * 1.25, axis.asinh / 4)];
    const room = (high - low || Math.abs(high) || 1) * 0.04;
    return [axis.zero ? 0 : low - room, high + room];
  }

  function splits(axis, low, high) {
    if (axis.splits) return axis.splits(high).filter((x) => x >= low && x <= high);
    const ticks = [];
    if (axis.asinh) {
      for (let tick = axis.asinh; tick <= Math.max(-low, high); tick *= 10) ticks.unshift(-tick), ticks.push(tick);
      ticks.push(0);
    } else if (axis.log && high / low > 8) {
      const steps = high / low > 2e3 ? [1] : [1, 2, 5];
      for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade += 1) {
        for (const step of steps) ticks.push(step * 10 ** decade);
      }
    } else {
      const rough = (high - low) / 6;
      const decade = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].find((step) => step * decade >= rough) * decade;
      for (let i = Math.ceil(low / step); i * step <= high; i += 1) ticks.push(i * step);
    }
    return ticks.filter((x) => x >= low && x <= high);
  }

  function plot(id, figure, chart) {
    const host = figure.querySelector(".plot");
    host.replaceChildren();
    const xRange = extent(chart.marks.flatMap((mark) => mark.xs), chart.x);
    const lines = chart.lines ?? [];
    const heights = chart.marks.flatMap((mark) => mark.low ? mark.ys.concat(mark.low) : mark.ys);
    const yRange = extent([...heights, ...(chart.side === "y" ? lines.map((line) => line.at) : [])], chart.y);
    const state = { focus: null, pixels: [] };
    const axis = (scale, side) => ({
      scale: side, label: scale.label, stroke: css("--muted"), labelSize: 24, size: side === "y" ? 72 : 36, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 4 },
      splits: (u, _, low, high) => splits(scale, low, high), filter: (u, values) => values, values: (u, values) => values.map(scale.text),
    });
    const u = new uPlot({
      width: Math.max(320, host.clientWidth), height: 340, legend: { show: false }, padding: [10, 16, 0, 0],
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      scales: { x: { time: false, distr: chart.x.log ? 3 : 1, range: (u, low, high) => low == null || low === high ? xRange : [low, high] }, y: { distr: chart.y.log ? 3 : chart.y.asinh ? 4 : 1, asinh: chart.y.asinh ?? 1, range: () => yRange } },
      axes: [axis(chart.x, "x"), axis(chart.y, "y")],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        draw: [(u) => { window.noctule.charts[id] = drawMarks(u, chart, lines, state); }],
        setCursor: [(u) => hover(u, state, tooltip)],
      },
    }, [xRange, [yRange[0], yRange[1]]], host);
    const tooltip = u.over.appendChild(Object.assign(document.createElement("div"), { className: "tooltip" }));
    return u;
  }

  function drawMarks(u, chart, lines, state) {
    const { ctx, bbox } = u;
    const dense = devicePixelRatio;
    const report = { expected: 0, drawn: 0 };
    state.pixels = [];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const mark of chart.marks) {
      const px = mark.xs.map((x) => u.valToPos(x, "x", true));
      const py = mark.ys.map((y) => u.valToPos(y, "y", true));
      const colour = css(`--c${mark.cell.colour}`);
      ctx.globalAlpha = state.focus === null || state.focus === mark.cell.id ? 1 : 0.15;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = (state.focus === mark.cell.id ? 2.5 : 1.6) * dense;
      ctx.setLineDash(DASHES[mark.cell.dash % DASHES.length].map((length) => length * dense));
      const drawn = shapes[mark.kind](u, mark, px, py, dense);
      // A band repeats the points of its line.
      if (mark.kind !== "band") {
        report.expected += px.length;
        report.drawn += drawn;
      }
      state.pixels.push({ mark, px, py });
    }
    ctx.globalAlpha = 1;
    drawLines(u, chart.side, lines, dense);
    ctx.restore();
    return report;
  }

  const finite = (px, py, i) => Number.isFinite(px[i]) && Number.isFinite(py[i]);

  // Each draws one mark and returns how many of its points it drew.
  const shapes = {
    line({ ctx }, mark, px, py, dense) {
      let drawn = 0;
      ctx.beginPath();
      for (let i = 0; i < px.length; i += 1) if (finite(px, py, i)) { ctx.lineTo(px[i], py[i]); drawn += 1; }
      ctx.stroke();
      return mark.points ? Math.min(drawn, shapes.dots({ ctx }, mark, px, py, dense * 2)) : drawn;
    },
    dots({ ctx }, mark, px, py, dense) {
      let drawn = 0;
      const side = 2.4 * dense;
      for (let i = 0; i < px.length; i += 1) if (finite(px, py, i)) { ctx.fillRect(px[i] - side / 2, py[i] - side / 2, side, side); drawn += 1; }
      return drawn;
    },
    ring({ ctx }, mark, px, py, dense) {
      let drawn = 0;
      ctx.setLineDash([]);
      for (let i = 0; i < px.length; i += 1) {
        if (!finite(px, py, i)) continue;
        ctx.beginPath();
        ctx.arc(px[i], py[i], 3.5 * dense, 0, 2 * Math.PI);
        ctx.stroke();
        drawn += 1;
      }
      return drawn;
    },
    band({ ctx, valToPos }, mark, px, py) {
      const low = mark.low.map((y) => valToPos(y, "y", true));
      const alpha = ctx.globalAlpha;
      ctx.globalAlpha = alpha * 0.16;
      ctx.beginPath();
      px.forEach((x, i) => ctx.lineTo(x, py[i]));
      for (let i = px.length - 1; i >= 0; i -= 1) ctx.lineTo(px[i], low[i]);
      ctx.fill();
      ctx.globalAlpha = alpha;
      return px.filter((_, i) => finite(px, py, i)).length;
    },
    bars(u, mark, px, py, dense) {
      const { ctx, bbox } = u;
      const ground = bbox.top + bbox.height;
      const half = Math.abs(u.valToPos(mark.bin[1], "x", true) - u.valToPos(mark.bin[0], "x", true)) / 2;
      const alpha = ctx.globalAlpha;
      let drawn = 0;
      ctx.beginPath();
      px.forEach((x, i) => {
        if (!finite(px, py, i)) return;
        const apart = i === 0 || x - px[i - 1] > 2.5 * half;
        if (apart) ctx.moveTo(x - half, ground);
        ctx.lineTo(x - half, py[i]);
        ctx.lineTo(x + half, py[i]);
        if (i + 1 === px.length || px[i + 1] - x > 2.5 * half) ctx.lineTo(x + half, ground);
        drawn += 1;
      });
      ctx.globalAlpha = alpha * 0.14;
      ctx.fill();
      ctx.globalAlpha = alpha;
      ctx.lineWidth = Math.min(ctx.lineWidth, 1.4 * dense);
      ctx.stroke();
      return drawn;
    },
  };

  function drawLines(u, side, lines, dense) {
    const { ctx, bbox } = u;
    const places = lines.map((line) => [line, u.valToPos(line.at, side, true)]).filter(([, at]) => Number.isFinite(at)).sort((a, b) => a[1] - b[1]);
    ctx.strokeStyle = ctx.fillStyle = css("--ink");
    ctx.lineWidth = 1.2 * dense;
    ctx.setLineDash([2 * dense, 3 * dense]);
    ctx.font = `${11 * dense}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    const apart = 14 * dense;
    let free = -Infinity;
    for (const [i, [{ text }, at]] of places.entries()) {
      // The first is named before its line, the others after theirs and each other.
      const label = i === 0 ? at - 2 * dense : Math.max(at + apart, free);
      free = i === 0 ? at + apart : label + apart;
      ctx.beginPath();
      if (side === "y") { ctx.moveTo(bbox.left, at); ctx.lineTo(bbox.left + bbox.width, at); } else { ctx.moveTo(at, bbox.top); ctx.lineTo(at, bbox.top + bbox.height); }
      ctx.stroke();
      ctx.save();
      if (side === "y") ctx.translate(bbox.left + bbox.width - 6 * dense, label);
      else { ctx.translate(label, bbox.top + 6 * dense); ctx.rotate(-Math.PI / 2); }
      // A rim of paper keeps the name readable on dots.
      ctx.setLineDash([]);
      ctx.strokeStyle = css("--paper");
      ctx.lineWidth = 4 * dense;
      ctx.strokeText(text, 0, 0);
      ctx.fillText(text, 0, 0);
      ctx.restore();
    }
  }

  function hover(u, state, tooltip) {
    const dense = devicePixelRatio;
    const { left, top } = u.cursor;
    let best = { distance: (26 * dense) ** 2 };
    if (left >= 0) {
      const x = left * dense + u.bbox.left, y = top * dense + u.bbox.top;
      for (const { mark, px, py } of state.pixels) {
        for (let i = 0; i < px.length; i += 1) {
          const distance = (px[i] - x) ** 2 + (py[i] - y) ** 2;
          if (distance < best.distance) best = { distance, mark, i };
        }
      }
    }
    tooltip.style.display = best.mark ? "block" : "none";
    if (best.mark) {
      const name = Object.assign(document.createElement("b"), { textContent: best.mark.cell.label });
      name.style.color = css(`--c${best.mark.cell.colour}`);
      tooltip.replaceChildren(name, document.createElement("br"), best.mark.say(best.i));
      const width = tooltip.offsetWidth, within = u.over.clientWidth;
      tooltip.style.left = `${left + 14 + width > within ? left - width - 14 : left + 14}px`;
      tooltip.style.top = `${Math.max(0, top - 46)}px`;
    }
    const focus = best.mark ? best.mark.cell.id : null;
    if (focus !== state.focus) {
      state.focus = focus;
      u.redraw(false);
    }
  }

  function swatch(cell) {
    const dash = DASHES[cell.dash % DASHES.length].join(" ");
    const holder = document.createElement("span");
    holder.className = "swatch";
    holder.innerHTML = `<svg width="22" height="10" aria-hidden="true"><line x1="0" y1="5" x2="22" y2="5" stroke="var(--c${cell.colour})" stroke-width="3" stroke-dasharray="${dash}"/></svg>`;
    return holder;
  }

  // Light or dark, at will; always light on paper.
  function themes(redraw, plots) {
    const set = (theme) => { root.dataset.theme = theme; redraw(); };
    document.getElementById("theme").addEventListener("click", () => set(root.dataset.theme === "dark" ? "light" : "dark"));
    let width = innerWidth;
    window.addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
    let screenTheme = root.dataset.theme;
    window.addEventListener("beforeprint", () => {
      screenTheme = root.dataset.theme;
      set("light");
      for (const u of plots()) u.setSize({ width: 700, height: 300 });
    });
    window.addEventListener("afterprint", () => set(screenTheme));
  }

  return { three, withUnit, duration, seconds, size, rate, grouped, logAxis, linearAxis, plot, swatch, themes };
})();
