// The charts of a report, drawn by plot.js. Reading order: charts → floors → selection → tables → start.
(() => {
  "use strict";

  const material = JSON.parse(document.getElementById("material").textContent);
  const cells = material.cells.map((cell, id) => ({ ...cell, id }));
  const drawable = cells.filter((cell) => cell.curve.length + cell.trials.length > 0);
  const shown = new Set();
  const COLOURS = 8;
  const SHOWN_AT_FIRST = 8;
  let dressed = [];
  const { three, duration, seconds, size, rate, grouped, logAxis, linearAxis, plot, swatch, themes } = noctulePlot;

  // ---- figures for people -------------------------------------------------------------------

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
        side: "y",
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
              cell, kind: "bars", bin: [edge(0), edge(1)],
              xs: occupied.map(([bin]) => edge(bin + 0.5)), ys: occupied.map(([, count]) => count / cell.samples),
              say: (i) => `${duration(edge(occupied[i][0]))} – ${duration(edge(occupied[i][0] + 1))}: ${grouped(occupied[i][1])} of ${grouped(cell.samples)}`,
            };
          }),
          side: "x",
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
        side: "y",
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

  // ---- floors -------------------------------------------------------------------------------

  // Floors of the shown experiments; those equal within a percent share one line.
  function floorLines(marks) {
    const lines = [];
    for (const { cell } of marks) {
      if (cell.floor && !lines.some((line) => line.name === cell.floor.name && Math.abs(line.p50_ns / cell.floor.p50_ns - 1) < 0.01)) lines.push(cell.floor);
    }
    return lines.map((floor) => ({ at: floor.p50_ns, text: `${floor.name} floor, p50 ${duration(floor.p50_ns)}` }));
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
    const built = chart.build(list);
    plots.set(id, plot(id, figure, { ...built, lines: built.side ? floorLines(built.marks) : [] }));
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
    themes(redrawAll, () => plots.values());
  }

  start();
})();
