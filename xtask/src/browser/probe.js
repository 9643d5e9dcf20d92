// Added to a report by the browser test after the report's own scripts. Shows every experiment, waits
// for the charts, and leaves its answer in the document, without any character that HTML escapes.
(() => {
  const coloured = (canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const [r, g, b, a] = pixels.subarray(i, i + 4);
      if (a > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 40) count += 1;
    }
    return count;
  };
  const answer = () => {
    const charts = [...document.querySelectorAll("figure[data-chart]")].map((figure) => {
      const report = window.noctule?.charts[figure.dataset.chart] ?? { expected: 0, drawn: 0 };
      const canvas = figure.querySelector("canvas");
      const painted = [...figure.querySelectorAll("td.heat")].filter((cell) => getComputedStyle(cell).backgroundColor !== "rgba(0, 0, 0, 0)");
      return { name: figure.dataset.chart, material: Number(figure.dataset.material), ...report,
        coloured_pixels: canvas ? coloured(canvas) : painted.length * 1000 };
    });
    const text = JSON.stringify({ charts, failures: window.failures, violations: window.violations,
      fetched: performance.getEntriesByType("resource").map((entry) => entry.name) });
    document.body.append(Object.assign(document.createElement("pre"), { id: "probe", textContent:
      text.replace(/[&<>\u0080-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) }));
  };
  [...document.querySelectorAll("#toolbar button")].find((button) => button.textContent === "all")?.click();
  setTimeout(answer, 500);
})();
