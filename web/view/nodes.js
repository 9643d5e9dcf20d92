// Every node's clock and the link to it; what does not match, with the way out.
'use strict';

const NODE_HEADS = ['node', 'clock offset', 'bound', 'drift', 'RTT', 'least RTT', 'loss', 'redundancy', 'capacity', 'answered', 'σ', 'state', 'received', 'address', 'number'];

const LINK_HEADS = ['from', 'to', 'RTT', 'loss', 'redundancy', 'capacity', 'sent', 'received'];

const nodesView = {
  draw() {
    this.problems();
    const table = element('nodes');
    if (timeline.mode === 'file') {
      element('nodes-note').textContent = nodes.length
        ? 'Offset, drift and bound are of each node’s clock against the recorder’s at this moment of the recording. Round trips are pings of the recorder, one a node every 2 s. Loss, redundancy and capacity are of the link between that node and the recorder.'
        : 'This recording has samples, their ages and bounds. Its recorder did not write the clocks and links of the nodes.';
      if (!nodes.length) { table.replaceChildren(); this.between([]); return; }
    }
    const head = document.createElement('thead');
    head.append(line(NODE_HEADS, 'th'));
    const body = document.createElement('tbody');
    const sorted = [...nodes].sort((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id));
    body.append(...sorted.map((node) => {
      const clock = node.clock;
      const here = node.same_host ? 'this host’s' : '–';
      return line([
        node.name, clock ? timeText(clock.offset_ms) : here,
        clock ? (known(clock.bound_ms) ? `± ${timeText(clock.bound_ms)}` : 'none proven') : node.same_host ? 'exact' : '–',
        clock ? `${clock.drift_ppm.toFixed(2)} ppm` : '–', timeText(node.rtt_ms), timeText(node.rtt_min_ms), ...linkTexts(node).slice(1),
        node.pings ? `${node.answers} of ${node.pings}` : '–', clock && known(clock.sigma_ms) ? timeText(clock.sigma_ms) : '–', clock ? clock.state : '–',
        node.delivered || '–', node.same_host ? `${node.address} (this host)` : node.address, node.id.slice(0, 8),
      ], 'td');
    }));
    table.replaceChildren(head, body);
    this.between(links);
  },

  // As the node that a link leaves from knows it; within a host there is shared memory and no link.
  between(links) {
    element('links-title').hidden = !links.length;
    if (!links.length) { element('links').replaceChildren(); return; }
    const head = document.createElement('thead');
    head.append(line(LINK_HEADS, 'th'));
    const body = document.createElement('tbody');
    const sorted = [...links].sort((a, b) => a.from.localeCompare(b.from) || a.to.localeCompare(b.to) || a.to_id.localeCompare(b.to_id));
    body.append(...sorted.map((link) => line([link.from, link.to, ...linkTexts(link), link.sent, link.received], 'td')));
    element('links').replaceChildren(head, body);
  },

  problems() {
    const panels = catalog.mismatches.map((one) => {
      const panel = document.createElement('section');
      panel.className = 'panel problem';
      const title = document.createElement('h2');
      title.textContent = `${one.topic}: ${one.writer} and ${one.reader} do not match`;
      const why = document.createElement('p');
      why.textContent = one.why;
      panel.append(title, why);
      return panel;
    });
    if (catalog.notices.length) {
      const panel = document.createElement('section');
      panel.className = 'panel';
      const title = document.createElement('h2');
      title.textContent = 'Notices';
      panel.append(title, ...catalog.notices.slice(-8).map(note));
      panels.push(panel);
    }
    const key = JSON.stringify([catalog.mismatches, catalog.notices]);
    if (key !== this.key) { this.key = key; element('problems').replaceChildren(...panels); }
  },
};

// Round trip, loss, redundancy, capacity.
function linkTexts(link) {
  const first = Math.max(1, link.sent - link.extras);
  return [
    timeText(link.rtt_ms), known(link.loss) ? `${(link.loss * 100).toFixed(2)} %` : '–', link.sent ? `${(link.extras / first * 100).toFixed(1)} %` : '–',
    known(link.capacity_bytes_per_s) ? `${(link.capacity_bytes_per_s * 8e-6).toFixed(1)} Mbit/s` : '–',
  ];
}

function line(texts, kind) {
  const row = document.createElement('tr');
  row.append(...texts.map((text) => {
    const cell = document.createElement(kind);
    if (kind === 'th') cell.scope = 'col';
    cell.textContent = text;
    return cell;
  }));
  return row;
}
