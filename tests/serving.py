"""Servers on 127.0.0.1 for tests: real ones (llama.cpp, transformers) and one that misbehaves on request."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_SERVE = """
import sys, time, xllamacpp as x
p = x.CommonParams()
p.model.path = sys.argv[1]; p.hostnames = ["127.0.0.1"]; p.port = int(sys.argv[2])
p.n_ctx = 2048; p.n_parallel = 1; p.warmup = False; p.model_alias = {"words", "real"}; p.use_jinja = True
p.cpuparams.n_threads = 1; p.cache_prompt = sys.argv[3] == "cached"
s = x.Server(p); print(s.listening_address, flush=True)
while True: time.sleep(1)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def llama_server(gguf: Path, log: Path, *, cached: bool = True) -> Iterator[str]:
    """The base URL of a llama.cpp server of ``gguf``, started in a process of its own and stopped at the end.

    Args:
        cached: compute a prompt from where it departs from the last one, which changes last digits.
    """
    port = free_port()
    with _child([sys.executable, "-c", _SERVE, str(gguf), str(port), "cached" if cached else "anew"], port, log) as url:
        yield url


@contextmanager
def transformers_server(model: Path, log: Path, *arguments: str) -> Iterator[str]:
    """The base URL of ``transformers serve`` with a model in a folder, in float32; it is named by that path."""
    port, main = free_port(), "from transformers.cli.transformers import main; main()"
    own = ["--port", str(port), "--host", "127.0.0.1", "--dtype", "float32"]
    command = [sys.executable, "-c", main, "serve", str(model), *own, *arguments]
    with _child(command, port, log) as url:
        yield url


@contextmanager
def _child(command: list[str], port: int, log: Path) -> Iterator[str]:
    env = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=env)
        try:
            for _ in range(3000):
                if process.poll() is not None:
                    raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}")
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
                        if reply.status == 200:
                            break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.1)
            else:
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def completion(text: str | None, **message: Any) -> dict[str, Any]:
    """A chat completion as an OpenAI-compatible server returns it."""
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "words",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@dataclass
class Fault:
    """What the server does with one request.

    Attributes:
        status: HTTP status.
        body: the reply; a dict is sent as JSON.
        cut: close the connection in the middle of the body.
        delay: seconds to wait before answering.
        drip: seconds before every byte of the reply; of its head too, where ``drip_head``.
        headers: more of them.
    """

    status: int = 200
    body: dict[str, Any] | str = ""
    cut: bool = False
    delay: float = 0.0
    drip: float = 0.0
    drip_head: bool = False
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FaultServer:
    """A server whose ``answer(request body)`` says what each request gets; it remembers all requests.

    ``about(path)`` says what a GET gets: who the server is.
    """

    answer: Callable[[dict[str, Any]], Fault]
    about: Callable[[str], Fault] = lambda path: Fault(404)
    url: str = ""
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    @contextmanager
    def running(self, port: int = 0) -> Iterator[FaultServer]:
        """While the block runs; at the ``port`` of an earlier server where it is to be taken for that one."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                outer.authorizations.append(self.headers.get("Authorization"))
                self._send(outer.answer(request))

            def do_GET(self) -> None:
                outer.looked_at.append(self.path)
                self._send(outer.about(self.path))

            def _send(self, fault: Fault) -> None:
                time.sleep(fault.delay)
                body = (fault.body if isinstance(fault.body, str) else json.dumps(fault.body)).encode()
                self.send_response(fault.status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in {"Content-Type": "application/json", **fault.headers}.items():
                    self.send_header(name, value)
                if fault.drip and fault.drip_head:
                    head, self._headers_buffer = b"".join(self._headers_buffer) + b"\r\n", []
                    self._drip(head + body, fault.drip)
                    return
                self.end_headers()
                if fault.drip:
                    self._drip(body, fault.drip)
                    return
                if fault.cut:
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.wfile.write(body)

            def _drip(self, data: bytes, seconds: float) -> None:
                with suppress(OSError):  # the client has had enough
                    for byte in data:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        time.sleep(seconds)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *arguments: Any) -> None:
                if not isinstance(sys.exception(), OSError | json.JSONDecodeError):  # the client has gone
                    super().handle_error(*arguments)

        server = Server(("127.0.0.1", port), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.port = server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join(10)
