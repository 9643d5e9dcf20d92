// Exports the shown data as files: PNG, SVG, CSV. They are made here and go nowhere else.
'use strict';

function download(name, type, content) {
  const link = document.createElement('a');
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  document.body.dataset.exported = `${name} ${blob.size}`;
}

// A cell of CSV (RFC 4180).
const csvCell = (value) => {
  const text = value === null || value === undefined || Number.isNaN(value) ? '' : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = (rows) => rows.map((row) => row.map(csvCell).join(',') + '\r\n').join('');

function exportCanvas(name, canvas) {
  const whole = document.createElement('canvas');
  [whole.width, whole.height] = [canvas.width, canvas.height];
  const context = whole.getContext('2d');
  context.fillStyle = colour('--paper');
  context.fillRect(0, 0, whole.width, whole.height);
  context.drawImage(canvas, 0, 0);
  whole.toBlob((blob) => download(`${name}.png`, 'image/png', blob));
}

// An SVG element as a file of its own: what the style sheet says becomes attributes.
function svgText(svg) {
  const copy = svg.cloneNode(true);
  const styled = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-size', 'font-family', 'font-weight', 'paint-order', 'opacity', 'text-anchor'];
  const [from, to] = [[svg, ...svg.querySelectorAll('*')], [copy, ...copy.querySelectorAll('*')]];
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const name of styled) to[index].setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const paper = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of [['width', '100%'], ['height', '100%'], ['fill', colour('--paper')]]) paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

function exportSvg(name, svg, asPng) {
  const text = svgText(svg);
  if (!asPng) { download(`${name}.svg`, 'image/svg+xml', text); return; }
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    exportCanvas(name, canvas);
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}
