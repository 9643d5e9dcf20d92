// The socket of a live page: comes back by itself, and knows the other side's clock with a bound.
'use strict';

class LiveSocket {
  // `heard` gets each message; `changed` gets true or false when the connection comes or goes; `binary` gets each
  // message of bytes as a DataView.
  constructor(heard, changed, binary) {
    this.heard = heard;
    this.binary = binary;
    this.bytes = 0;
    this.changed = changed;
    this.token = new URLSearchParams(location.search).get('token') || '';
    // Offset of the server's clock in ms and half of the best round trip; exchanges older than 30 s are forgotten.
    this.exchanges = [];
    this.open();
    setInterval(() => this.send({ t: 'ping', c: performance.now() }), 500);
  }

  open() {
    this.socket = new WebSocket(`ws://${location.host}/socket?token=${encodeURIComponent(this.token)}`);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onopen = () => { this.changed(true); this.send({ t: 'ping', c: performance.now() }); };
    this.socket.onclose = () => { this.changed(false); this.exchanges = []; setTimeout(() => this.open(), 1000); };
    this.socket.onmessage = (event) => {
      if (event.data instanceof ArrayBuffer) {
        this.bytes += event.data.byteLength;
        if (this.binary) this.binary(new DataView(event.data));
        return;
      }
      this.bytes += event.data.length;
      const message = JSON.parse(event.data);
      if (message.t === 'pong') this.exchange(message.c, message.s, performance.now());
      else this.heard(message);
    };
  }

  exchange(sent, server, received) {
    this.exchanges.push({ at: received, bound: (received - sent) / 2, offset: server - (sent + received) / 2 });
    this.exchanges = this.exchanges.filter((exchange) => received - exchange.at < 30000);
  }

  // The server's time in ms at `local` of performance.now(), and its bound; null before the first exchange.
  clock(local) {
    if (!this.exchanges.length) return null;
    const best = this.exchanges.reduce((a, b) => (b.bound < a.bound ? b : a));
    // 100 ppm between the clocks since then.
    return { at: local + best.offset, bound: best.bound + 1e-4 * Math.abs(local - best.at) };
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
