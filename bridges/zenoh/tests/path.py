"""A TCP path that counts bytes and delays them, in order."""

import asyncio
import random
import threading


class Path:
    """Listens on a port of its own and passes what comes to another, each way `delay_s` later and up to `jitter_s` more."""

    def __init__(self, to_port: int, delay_s: float = 0.0, jitter_s: float = 0.0) -> None:
        self.to_port, self.delay_s, self.jitter_s = to_port, delay_s, jitter_s
        self.up_bytes = self.down_bytes = self.connections = 0
        self.is_cut = False
        self.random = random.Random(1)
        self.loop = asyncio.new_event_loop()
        self.writers: list[asyncio.StreamWriter] = []
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,))
        self.thread.start()
        ready.wait()

    @property
    def endpoint(self) -> str:
        return f"tcp/127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Breaks all connections, and takes none until it is mended."""
        self.is_cut = True

        def close() -> None:
            while self.writers:
                self.writers.pop().transport.abort()

        self.loop.call_soon_threadsafe(close)

    def mend(self) -> None:
        self.is_cut = False

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        server.close()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        self.connections += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to_port)
        except OSError:
            writer.close()
            return
        self.writers += [writer, far_writer]
        up = self._pass(reader, far_writer, is_up=True)
        await asyncio.gather(up, self._pass(far_reader, writer, is_up=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_up: bool) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, chunk = await waiting.get()
                await asyncio.sleep(max(0.0, due - self.loop.time()))
                writer.write(chunk)
                if not chunk:
                    writer.close()
                    return

        delivery = asyncio.ensure_future(deliver())
        last = 0.0
        try:
            while chunk := await reader.read(65536):
                if is_up:
                    self.up_bytes += len(chunk)
                else:
                    self.down_bytes += len(chunk)
                last = max(last, self.loop.time() + self.delay_s + self.random.random() * self.jitter_s)
                waiting.put_nowait((last, chunk))
        except OSError:
            pass
        waiting.put_nowait((last, b""))
        await delivery
