// The charts of a replayed trace: every panel of the material as it is, drawn by plot.js.
(() => {
  "use strict";

  const panels = JSON.parse(document.getElementById("material").textContent);
  const { duration, seconds, three, withUnit, plot, themes } = noctulePlot;
  const texts = {
    seconds, nanoseconds: duration, millimetres: (x) => `${three(x)} mm`,
    ratio: (x) => withUnit(x, [[1e-12, "ppt"], [1e-9, "ppb"], [1e-6, "ppm"]]),
    metres: (x) => withUnit(x, [[1, "m"]]),
  };
  const plots = new Map();

  const axis = ({ label, spacing, unit }) => ({ label, text: texts[unit], log: spacing === "log", asinh: spacing.asinh });

  function chart({ x, y, marks, lines }) {
    const say = (mark) => (i) => `${texts[x.unit](mark.xs[i])}: ${texts[y.unit](mark.ys[i])}`;
    const kinds = { steps: { kind: "line", points: true } };
    return {
      x: axis(x), y: axis(y), side: "y",
      lines: lines.map(([text, at]) => ({ text, at })),
      marks: marks.map((mark) => ({
        ...mark, ...kinds[mark.kind], low: mark.kind === "band" ? mark.low : undefined, say: say(mark),
        cell: { id: mark.label, label: mark.label, colour: mark.colour, dash: 0 },
      })),
    };
  }

  function redraw() {
    for (const panel of panels) {
      plots.get(panel.id)?.destroy();
      plots.set(panel.id, plot(panel.id, document.getElementById(`chart-${panel.id}`), chart(panel)));
    }
  }

  redraw();
  themes(redraw, () => plots.values());
})();
