// The charts of a report. Axes, zoom and cursor are uPlot's; the marks are drawn here, so that one
// routine draws every chart, finds the point under the cursor and counts what it drew.
//
// A chart is { x, y, marks, lines }: two scales, the marks of each shown experiment in data
// coordinates, and floors as lines. Reading order: figures → charts → plot → selection → tables → start.
(() => {
  "use strict";

  const material = JSON.parse(document.getElementById("material").textContent);
  const cells = material.cells.map((cell, id) => ({ ...cell, id }));
  const drawable = cells.filter((cell) => cell.curve.length + cell.trials.length > 0);
  const shown = new Set();
  const COLOURS = 8;
  const SHOWN_AT_FIRST = 8;
  let dressed = [];
  const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2, 1, 2]];
  const root = document.documentElement;
  // What the browser test reads: marks there were, and marks that reached the canvas.
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
  const percentileName = (nines) => {
    if (nines < 1e-9) return "min";
    const digits = Math.max(0, Math.ceil(nines - 2 - 1e-9));
    return `p${(100 * (1 - 10 ** -nines)).toFixed(digits + (Math.abs(nines - Math.round(nines)) < 1e-9 || Math.abs(nines - Math.LOG10E * Math.LN2) < 1e-9 ? 0 : 1))}`;
  };

  // Of the shown experiments: the peer and the properties in which they differ. Few have a colour each;
  // many have their peer's, and a dash for each of those that share it.
  function dress(list) {
    if (list.length === 0) return list;
    const differs = list[0].properties?.map((_, i) => list.some((cell) => cell.properties[i] !== list[0].properties[i]));
    const shared = new Set(list.map((cell) => cell.colour)).size < list.length;
    const used = {};
    return list.map((cell, i) => {
      const colour = shared && list.length <= COLOURS ? i : cell.colour;
      used[colour] = (used[colour] ?? -1) + 1;
      const own = differs ? cell.properties.filter((property, i) => property && differs[i]) : [];
      return { ...cell, colour, dash: used[colour], label: differs ? [cell.peer, ...own].join(" ") : cell.label };
    });
  }

  // ---- charts -------------------------------------------------------------------------------

  const logAxis = (label, text) => ({ log: true, label, text });
  const linearAxis = (label, text) => ({ log: false, label, text });
  const latencyAxis = () => logAxis("latency", duration);
  const modes = { histogram: "share", dots: "trial", sweep_payload: "p50", sweep_rate: "p50" };

  const charts = {
    curve: {
      has: (cell) => cell.curve.length > 0,
      build: (list) => ({
        x: { ...linearAxis("percentile (each step to the right is one more nine)", percentileName), splits: (max) => [0, Math.LOG10E * Math.LN2, ...Array.from({ length: Math.ceil(max) }, (_, i) => i + 1)] },
        y: latencyAxis(),
        marks: list.flatMap((cell) => [
          { cell, kind: "line", xs: cell.curve.map((p) => p[0]), ys: cell.curve.map((p) => p[1]), say: (i) => `${percentileName(cell.curve[i][0])}: ${duration(cell.curve[i][1])}` },
          { cell, kind: "ring", xs: [cell.max[0]], ys: [cell.max[1]], say: () => `largest of ${grouped(cell.samples)}: ${duration(cell.max[1])}` },
        ]),
        floors: "y",
      }),
      table: (list) => {
        const grid = [...new Set(list.flatMap((cell) => cell.curve.map((p) => p[0])))].sort((a, b) => a - b);
        const rows = grid.map((x) => [percentileName(x), ...list.map((cell) => duration(cell.curve.find((p) => p[0] === x)?.[1]))]);
        return [["percentile", ...list.map((cell) => cell.label)], [...rows, ["max", ...list.map((cell) => duration(cell.max?.[1]))]]];
      },
    },
    histogram: {
      has: (cell) => cell.histogram.counts.length > 0,
      controls: [["share", "share"], ["log", "log share"]],
      build: (list) => {
        const log = modes.histogram === "log";
        return {
          x: logAxis("latency (bins of 5.9 %)", duration),
          y: log ? logAxis("share of samples", share) : { ...linearAxis("share of samples", share), zero: true },
          marks: list.map((cell) => {
            const { first_bin: first, counts } = cell.histogram;
            const occupied = counts.map((count, i) => [first + i, count]).filter(([, count]) => count > 0);
            return {
              cell, kind: "bars",
              xs: occupied.map(([bin]) => edge(bin + 0.5)), ys: occupied.map(([, count]) => count / cell.samples),
              say: (i) => `${duration(edge(occupied[i][0]))} – ${duration(edge(occupied[i][0] + 1))}: ${grouped(occupied[i][1])} of ${grouped(cell.samples)}`,
            };
          }),
          floors: "x",
        };
      },
      table: (list) => {
        const count = (cell, bin) => cell.histogram.counts[bin - cell.histogram.first_bin] ?? 0;
        const bins = [...new Set(list.flatMap((cell) => cell.histogram.counts.flatMap((n, i) => n > 0 ? [cell.histogram.first_bin + i] : [])))].sort((a, b) => a - b);
        return [["from", "to", ...list.map((cell) => cell.label)], bins.map((bin) => [duration(edge(bin)), duration(edge(bin + 1)), ...list.map((cell) => grouped(count(cell, bin)))])];
      },
    },
    dots: {
      has: (cell) => cell.trials.length > 0,
      controls: [["trial", "from start of trial"], ["run", "from start of run"]],
      build: (list) => ({
        x: linearAxis(modes.dots === "run" ? "scheduled send, from the start of the run" : "scheduled send, from the start of its trial", seconds),
        y: latencyAxis(),
        marks: list.flatMap((cell) => cell.trials.map((trial) => {
          const start = modes.dots === "run" ? trial.start_s : 0;
          return { cell, kind: "dots", xs: trial.time_us.map((us) => start + us / 1e6), ys: trial.latency_ns, say: (i) => `trial ${trial.trial}, at ${seconds(trial.time_us[i] / 1e6)}: ${duration(trial.latency_ns[i])}` };
        })),
        floors: "y",
      }),
      table: (list) => [["experiment", "trial", "tenth", "samples", "p50", "p99"], list.flatMap((cell) => cell.trials.flatMap((trial) => trial.blocks.map((block, i) => [cell.label, trial.trial, i + 1, grouped(block.count), duration(block.p50_ns), duration(block.p99_ns)])))],
    },
    cumulative: {
      has: (cell) => cell.cumulative.length > 0,
      build: (list) => ({
        x: { ...linearAxis("node", String), splits: (max) => Array.from({ length: Math.round(max) + 1 }, (_, i) => i) },
        y: { ...linearAxis("latency from the scheduled send", duration), zero: true },
        marks: list.flatMap((cell) => {
          const hops = [{ node: 0, p50_ns: 0, p99_ns: 0 }, ...cell.cumulative];
          const upper = hops.filter((hop) => hop.p99_ns != null);
          const say = (hops) => (i) => `up to node ${hops[i].node}: p50 ${duration(hops[i].p50_ns)}, p99 ${duration(hops[i].p99_ns)}`;
          return [
            { cell, kind: "band", xs: upper.map((hop) => hop.node), ys: upper.map((hop) => hop.p99_ns), low: upper.map((hop) => hop.p50_ns), say: say(upper) },
            { cell, kind: "line", points: true, xs: hops.map((hop) => hop.node), ys: hops.map((hop) => hop.p50_ns), say: say(hops) },
          ];
        }),
      }),
      table: (list) => [["experiment", "node", "p50", "p99"], list.flatMap((cell) => cell.cumulative.map((hop) => [cell.label, hop.node, duration(hop.p50_ns), duration(hop.p99_ns)]))],
    },
    sweep_payload: sweepChart("payload_bytes", "payload", size, "sweep_payload"),
    sweep_rate: sweepChart("rate_hz", "rate", rate, "sweep_rate"),
  };

  function share(x) { return `${three(x * 100)} %`; }
  function edge(bin) { return 10 ** (bin / material.bins_per_decade); }

  // A sweep's series are families of experiments, so it draws them all, whatever is selected.
  function sweepChart(parameter, label, text, id) {
    const families = material.sweeps.filter((sweep) => sweep.parameter === parameter)
      .map((sweep, i) => ({ ...sweep, id: `${id}${i}` }));
    const figure = (point) => modes[id] === "p99" ? point.p99_ns : point.p50_ns;
    return {
      families,
      controls: [["p50", "p50"], ["p99", "p99"]],
      build: (list) => ({
        x: logAxis(label, text),
        y: logAxis(`latency, ${modes[id]}`, duration),
        marks: list.map((sweep) => {
          const points = sweep.points.filter((point) => figure(point) != null);
          return { cell: sweep, kind: "line", points: true, xs: points.map((point) => point.x), ys: points.map(figure), say: (i) => `${text(points[i].x)}: p50 ${duration(points[i].p50_ns)}, p99 ${duration(points[i].p99_ns)}` };
        }),
      }),
      table: (list) => [["family", label, "p50", "p99"], list.flatMap((sweep) => sweep.points.map((point) => [sweep.label, text(point.x), duration(point.p50_ns), duration(point.p99_ns)]))],
    };
  }

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
    const room = (high - low || Math.abs(high) || 1) * 0.04;
    return [axis.zero ? 0 : low - room, high + room];
  }

  function splits(axis, low, high) {
    if (axis.splits) return axis.splits(high).filter((x) => x >= low && x <= high);
    const ticks = [];
    if (axis.log && high / low > 8) {
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
    const floors = chart.floors ? floorLines(chart.marks) : [];
    const yRange = extent([...chart.marks.flatMap((mark) => mark.ys), ...(chart.floors === "y" ? floors.map((floor) => floor.p50_ns) : [])], chart.y);
    const state = { focus: null, pixels: [] };
    const axis = (scale, side) => ({
      scale: side, label: scale.label, stroke: css("--muted"), labelSize: 24, size: side === "y" ? 72 : 36, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 4 },
      splits: (u, _, low, high) => splits(scale, low, high), filter: (u, values) => values, values: (u, values) => values.map(scale.text),
    });
    const u = new uPlot({
      width: Math.max(320, host.clientWidth), height: 340, legend: { show: false }, padding: [10, 16, 0, 0],
      cursor: { drag: { x: true, y: false }, points: { show: false } },
      scales: { x: { time: false, distr: chart.x.log ? 3 : 1, range: (u, low, high) => low == null || low === high ? xRange : [low, high] }, y: { distr: chart.y.log ? 3 : 1, range: () => yRange } },
      axes: [axis(chart.x, "x"), axis(chart.y, "y")],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        draw: [(u) => { window.noctule.charts[id] = drawMarks(u, chart, floors, state); }],
        setCursor: [(u) => hover(u, state, tooltip)],
      },
    }, [xRange, [yRange[0], yRange[1]]], host);
    const tooltip = u.over.appendChild(Object.assign(document.createElement("div"), { className: "tooltip" }));
    return u;
  }

  // Floors of the shown experiments; those equal within a percent share one line.
  function floorLines(marks) {
    const lines = [];
    for (const { cell } of marks) {
      if (cell.floor && !lines.some((line) => line.name === cell.floor.name && Math.abs(line.p50_ns / cell.floor.p50_ns - 1) < 0.01)) lines.push(cell.floor);
    }
    return lines;
  }

  function drawMarks(u, chart, floors, state) {
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
    drawFloors(u, chart.floors, floors, dense);
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
      if (!finite(px, py, 0)) return 0;
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.arc(px[0], py[0], 3.5 * dense, 0, 2 * Math.PI);
      ctx.stroke();
      return 1;
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
      const half = Math.abs(u.valToPos(edge(1), "x", true) - u.valToPos(edge(0), "x", true)) / 2;
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

  function drawFloors(u, side, floors, dense) {
    const { ctx, bbox } = u;
    const places = floors.map((floor) => [floor, u.valToPos(floor.p50_ns, side, true)]).filter(([, at]) => Number.isFinite(at)).sort((a, b) => a[1] - b[1]);
    ctx.strokeStyle = ctx.fillStyle = css("--ink");
    ctx.lineWidth = 1.2 * dense;
    ctx.setLineDash([2 * dense, 3 * dense]);
    ctx.font = `${11 * dense}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    const apart = 14 * dense;
    let free = -Infinity;
    for (const [i, [floor, at]] of places.entries()) {
      const text = `${floor.name} floor, p50 ${duration(floor.p50_ns)}`;
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

  // ---- selection ----------------------------------------------------------------------------

  const plots = new Map();

  // Shown experiments that have material for this chart; if none is shown, the first that have.
  function cellsFor(chart) {
    if (chart.families) return dress(chart.families);
    const able = drawable.filter(chart.has);
    const chosen = dressed.filter(chart.has);
    return chosen.length > 0 ? chosen : dress(able.slice(0, SHOWN_AT_FIRST));
  }

  function redraw(id) {
    const figure = document.getElementById(`chart-${id}`);
    const chart = charts[id];
    const list = cellsFor(chart);
    plots.get(id)?.destroy();
    plots.set(id, plot(id, figure, chart.build(list)));
    const samples = list.reduce((sum, cell) => sum + (cell.samples ?? 0), 0);
    figure.querySelector(".count").textContent = chart.families ? `${grouped(samples)} samples in ${list.length} famil${list.length === 1 ? "y" : "ies"}.` : `${grouped(samples)} samples of ${list.length} experiment${list.length === 1 ? "" : "s"}.`;
    figure.querySelector(".chips").replaceChildren(...list.map(chip));
    const twin = figure.querySelector(".twin");
    if (twin.open) fillTable(twin, chart);
  }

  function redrawAll() {
    dressed = dress(drawable.filter((cell) => shown.has(cell.id)));
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const id = figure.dataset.chart;
      if (charts[id]) redraw(id); else countHeatMap(figure);
    }
    document.getElementById("shown").textContent = `Charts show ${shown.size} of ${drawable.length} experiments:`;
    for (const row of document.querySelectorAll("#results tr[data-cell]")) {
      const cell = dressed.find((cell) => cell.id === Number(row.dataset.cell));
      row.querySelector("input").checked = cell !== undefined;
      row.style.setProperty("--own", cell ? `var(--c${cell.colour})` : "var(--muted)");
    }
    for (const button of document.querySelectorAll("#toolbar button")) button.setAttribute("aria-pressed", String(button.pick.length === shown.size && button.pick.every((cell) => shown.has(cell.id))));
  }

  function countHeatMap(figure) {
    const painted = [...figure.querySelectorAll("td.heat")].filter((cell) => cell.style.background || cell.style.backgroundColor);
    window.noctule.charts.heat_map = { expected: Number(figure.dataset.material), drawn: painted.length };
  }

  function show(list) {
    shown.clear();
    for (const cell of list) shown.add(cell.id);
    redrawAll();
  }

  function swatch(cell) {
    const dash = DASHES[cell.dash % DASHES.length].join(" ");
    const holder = document.createElement("span");
    holder.className = "swatch";
    holder.innerHTML = `<svg width="22" height="10" aria-hidden="true"><line x1="0" y1="5" x2="22" y2="5" stroke="var(--c${cell.colour})" stroke-width="3" stroke-dasharray="${dash}"/></svg>`;
    return holder;
  }

  function chip(cell) {
    const button = Object.assign(document.createElement("button"), { type: "button", title: cell.full ?? cell.label });
    button.append(swatch(cell), cell.label);
    if (cell.full) {
      button.title += " (click to hide)";
      button.addEventListener("click", () => {
        const list = drawable.filter((other) => shown.has(other.id) && other.id !== cell.id);
        if (list.length > 0) show(list);
      });
    }
    return button;
  }

  function fillToolbar() {
    const groups = [...new Set(drawable.map((cell) => cell.group))];
    const picks = groups.map((group) => [group, drawable.filter((cell) => cell.group === group)]);
    picks.sort((a, b) => b[1].length - a[1].length);
    const floors = drawable.filter((cell) => cell.is_floor);
    const offered = [...picks.slice(0, 10), ["floors", floors], ["all", drawable]].filter(([, list]) => list.length > 0);
    for (const [name, list] of offered) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name, pick: list });
      button.addEventListener("click", () => show(list));
      document.getElementById("toolbar").append(button);
    }
    return drawable.length <= SHOWN_AT_FIRST ? drawable : picks[0]?.[1] ?? [];
  }

  // ---- tables -------------------------------------------------------------------------------

  function fillTable(twin, chart) {
    const [head, rows] = chart.table(cellsFor(chart));
    const table = document.createElement("table");
    const fill = (parent, tag, texts) => {
      const row = parent.insertRow();
      for (const text of texts) row.append(Object.assign(document.createElement(tag), { textContent: text }));
    };
    fill(table.createTHead(), "th", head);
    const body = table.createTBody();
    for (const row of rows) fill(body, "td", row);
    twin.querySelector(".scroll").replaceChildren(table);
  }

  function sortResults(column, header) {
    const body = document.querySelector("#results tbody");
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    const value = (row) => row.cells[column]?.dataset.sort ?? (column === 0 ? row.textContent.trim() : "");
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return (ascending ? 1 : -1) * (column === 0 ? x.localeCompare(y) : Number(x) - Number(y));
    });
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    body.append(...rows);
  }

  // ---- start --------------------------------------------------------------------------------

  function setTheme(theme) {
    root.dataset.theme = theme;
    redrawAll();
  }

  function start() {
    for (const row of document.querySelectorAll("#results tr[data-cell]")) {
      row.querySelector("input").addEventListener("change", (event) => {
        const id = Number(row.dataset.cell);
        if (event.target.checked) shown.add(id); else shown.delete(id);
        redrawAll();
      });
    }
    [...document.querySelectorAll("#results th")].forEach((header, column) => header.querySelector("button")?.addEventListener("click", () => sortResults(column, header)));
    for (const [id, chart] of Object.entries(charts)) {
      const figure = document.getElementById(`chart-${id}`);
      figure?.querySelector(".twin").addEventListener("toggle", (event) => { if (event.target.open) fillTable(event.target, chart); });
      for (const [mode, name] of (figure && chart.controls) ?? []) {
        const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
        button.setAttribute("aria-pressed", String(modes[id] === mode));
        button.addEventListener("click", () => {
          modes[id] = mode;
          for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
          redraw(id);
        });
        figure.querySelector(".controls").append(button, " ");
      }
    }
    show(fillToolbar());
    document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
    let width = innerWidth;
    window.addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redrawAll(); } });
    let screenTheme = root.dataset.theme;
    window.addEventListener("beforeprint", () => {
      screenTheme = root.dataset.theme;
      setTheme("light");
      for (const u of plots.values()) u.setSize({ width: 700, height: 300 });
    });
    window.addEventListener("afterprint", () => setTheme(screenTheme));
  }

  start();
})();
