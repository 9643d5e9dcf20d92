// Foxglove's own client library against `noctule record --serve`: every sample that a publisher sends arrives once, in order.
// Usage: node foxglove.js ADDRESS MESSAGES, with the packages @foxglove/ws-protocol and ws beside it.
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const { WebSocket } = require("ws");

const [address, wanted] = [process.argv[2], Number(process.argv[3])];
const client = new FoxgloveClient({ ws: new WebSocket(address, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
const texts = [];
let info, time, channel, subscription;

function end(fault) {
  console[fault ? "error" : "info"](fault ?? `${texts.length} messages of ${channel.topic} by Foxglove's client library`);
  process.exit(fault ? 1 : 0);
}

setTimeout(() => end(`only ${texts.length} of ${wanted} messages in a minute`), 60_000);
client.on("error", (error) => end(`the connection failed: ${error.message ?? error}`));
client.on("serverInfo", (event) => (info = event));
client.on("status", (event) => end(`status: ${event.message}`));
client.on("time", (event) => {
  time = event.timestamp;
  finish();
});
client.on("advertise", (channels) => {
  channel ??= channels.find((each) => each.topic === "/foxglove_test");
  if (channel && subscription === undefined) {
    subscription = client.subscribe(channel.id);
  }
});
client.on("message", (event) => {
  if (event.subscriptionId !== subscription) end("a message of no subscription");
  const received = Number(event.timestamp / 1_000_000n);
  if (Math.abs(received - Date.now()) > 60_000) end(`a message of ${received} ms`);
  texts.push(Buffer.from(event.data.buffer, event.data.byteOffset, event.data.byteLength).toString());
  finish();
});

function finish() {
  if (texts.length < wanted || time === undefined) return;
  const first = Number(texts[0]);
  if (texts.some((text, index) => Number(text) !== first + index)) end(`not in order: ${texts.slice(0, 10)}`);
  if (!info?.capabilities.includes("time")) end("no server info");
  if (Math.abs(Number(time / 1_000_000n) - Date.now()) > 60_000) end(`a time of ${time} ns`);
  if (channel.encoding !== "bytes") end(`the encoding is ${channel.encoding}`);
  end();
}
