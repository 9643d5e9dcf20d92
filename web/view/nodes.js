// Every node's clock and the link to it; what does not match, with the way out.
'use strict';

const NODE_HEADS = ['node', 'address', 'clock offset', 'bound', 'σ', 'drift', 'state', 'RTT', 'least RTT', 'answered', 'loss', 'redundancy', 'capacity', 'received', 'number'];

const nodesView = {
  draw() {
    this.problems();
    const table = element('nodes');
    if (timeline.mode === 'file') {
      table.replaceChildren();
      element('nodes-note').textContent = 'A recording holds samples, their ages and bounds; it does not hold the clocks and links of the nodes.';
      return;
    }
    const head = document.createElement('thead');
    head.append(line(NODE_HEADS, 'th'));
    const body = document.createElement('tbody');
    body.append(...nodes.map((node) => {
      const clock = node.clock;
      const here = node.same_host ? 'this host’s' : '–';
      const sent = Math.max(1, node.sent - node.extras);
      return line([
        node.name, node.same_host ? `${node.address} (this host)` : node.address,
        clock ? timeText(clock.offset_ms) : here, clock ? (known(clock.bound_ms) ? `± ${timeText(clock.bound_ms)}` : 'none proven') : node.same_host ? 'exact' : '–',
        clock && known(clock.sigma_ms) ? timeText(clock.sigma_ms) : '–', clock ? `${clock.drift_ppm.toFixed(2)} ppm` : '–', clock ? clock.state : '–',
        timeText(node.rtt_ms), timeText(node.rtt_min_ms), node.pings ? `${node.answers} of ${node.pings}` : '–',
        known(node.loss) ? `${(node.loss * 100).toFixed(2)} %` : '–', node.sent ? `${(node.extras / sent * 100).toFixed(1)} %` : '–',
        known(node.capacity_bytes_per_s) ? `${(node.capacity_bytes_per_s * 8e-6).toFixed(1)} Mbit/s` : '–', node.delivered || '–', node.id.slice(0, 8),
      ], 'td');
    }));
    table.replaceChildren(head, body);
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
