"""Files and folders that others made: results that name commands, settings in the working folder, model folders; and
secrets, which must be in nothing that is written."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import shutil
import string
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

from benchmarks.reliability import Options, Row

FILES = 150
"""Result files, and files of settings."""
PLANTED = 12
"""Runs with secrets."""
TEMPLATES = 200
CONFIGURATIONS = 60
SECONDS = 60.0
"""A template or a configuration that keeps a processor longer than this is a failure; most take milliseconds."""


def rows(options: Options) -> Iterator[Row]:
    parts: tuple[tuple[str, Callable[[Options], Row]], ...] = (
        ("commands in result files", commands), ("settings in the working folder", settings),
        ("secrets in records and messages", secrets), ("chat templates", templates),
        ("configurations of models", configurations), ("GGUF with zeros", zeros),
    )  # fmt: skip
    for name, run in parts:
        if options.wants("hostile", name):
            yield run(options)


class Listening:
    """A server on this machine that keeps what it is sent, and gives scores of two labels.

    Attributes:
        heard: every request, as one text: its line, headers and body.
        status: of its replies; where it is not 200, the reply repeats the request.
    """

    def __init__(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.heard: list[str] = []
        self.status, self.headers = status, dict(headers or {})

    @contextmanager
    def running(self) -> Iterator[str]:
        """The address, without scheme, while the block runs."""
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8", "replace")
                told.heard.append(f"{self.requestline}\n{self.headers}\n{body}")
                scores = {"choices": [{"logprobs": {"top_logprobs": [{" A": -0.7, " B": -1.2, "x": -9.0}]}}]}
                reply = json.dumps(scores if told.status == 200 else {"error": {"message": told.heard[-1]}}).encode()
                self.send_response(told.status)
                for name, value in {**told.headers, "Content-Length": str(len(reply))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply)

            def do_GET(self) -> None:
                told.heard.append(f"{self.requestline}\n{self.headers}")
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


def run(*words: object) -> tuple[int, str]:
    """Exit code and everything printed of a command, in this process."""
    from unslant import cli

    told, code = io.StringIO(), 0
    with patch("sys.argv", ["unslant", *map(str, words)]), redirect_stdout(told), redirect_stderr(told):
        try:
            cli.main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(bool(stopped.code))
    return code, told.getvalue()


@contextmanager
def _folder(**environment: str) -> Iterator[Path]:
    """A working folder with a few questions, and a store of its own."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as home, chdir(name):
        asked = [{"id": str(i), "question": f"Is it {i}?", "options": ["x", "y"], "answer": i % 2} for i in range(4)]
        Path("q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
        with patch.dict(os.environ, {"UNSLANT_HOME": home, "HF_HUB_OFFLINE": "1", **environment}):
            yield Path(name)


# Commands and settings of others


def commands(options: Options) -> Row:
    """Recorded commands that run code, ask a server, read the environment or leave the folder, in every spelling."""
    row, rng = Row("hostile", "commands in result files", FILES), random.Random(options.seed)
    secret, server = _secret(rng), Listening()
    with server.running() as host, _folder(MY_SECRET=secret, UNSLANT_API_KEY=secret) as folder:
        for case in range(FILES):
            words = recorded_command(rng, host)
            file = folder / rng.choice(("a.json", "a.html"))
            write_result(file, words)
            code, told = run("rerun", file, *rng.choice(((), ("--anyway",), ("--json", "again.json"))))
            if code != 2 or len(told.splitlines()) != 1 or server.heard:
                row.fail(f"{case}: exit {code}, {len(server.heard)} requests: {words} {told[-200:]!r}")
                server.heard.clear()
            if rng.random() < 0.1:  # trusted, it may ask the server, but no key goes there
                run("rerun", file, "--trust", "--anyway", "-q")
                if any(secret in request for request in server.heard):
                    row.fail(f"{case}: a key was sent with --trust: {words}")
                server.heard.clear()
    row.note = "shown and refused, in one line; no request, no key"
    return row


def recorded_command(rng: random.Random, host: str) -> list[str]:
    """A command of ours with at least one option that a file may not decide."""
    model, questions = rng.choice(("fair", "m")), "q.jsonl"
    risky: list[list[str]] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(8)
        if kind == 0:
            switch = spelled(rng, "--trust-remote-code")
            risky.append([switch + rng.choice(("", "", "=true", "=True", "=1", "=yes"))])
        elif kind == 1:
            risky.append(valued(rng, "--base-url", f"http://{host}/v1"))
        elif kind == 2:
            url = valued(rng, "--base-url", f"http://{host}/v1")
            risky.append(url + valued(rng, "--header", rng.choice(("X: $MY_SECRET", "Authorization:$UNSLANT_API_KEY"))))
        elif kind == 3:
            model = rng.choice((f"http://{host}/v1#m", f"http://{host}/v1/systemone#m", "inspect:openai/gpt-4o"))
        elif kind == 4:
            questions = rng.choice(("/etc/passwd", "../x.jsonl", "~/q.jsonl", "a/../../q.jsonl"))
        elif kind == 5:
            risky.append(valued(rng, "--template", rng.choice(("/etc/passwd", "../t.toml"))))
        elif kind == 6:
            risky.append(valued(rng, "--ray", "10.0.0.1:6379"))
        else:
            risky.append(valued(rng, "--adapter", rng.choice(("/tmp/adapter", "../adapter"))))
    options = [word for option in rng.sample(risky, len(risky)) for word in option]
    if model in ("fair", "m") and questions == "q.jsonl" and not options:
        options = ["--trust_remote_code"]
    command = rng.choice((["audit"], ["study", "base-rate"], ["train"]))
    words = [*command, *([*options, model, questions] if rng.random() < 0.3 else [model, questions, *options])]
    return words if rng.random() < 0.8 else [*words, "--limit", "2"]


def spelled(rng: random.Random, option: str) -> str:
    """The name of an option as the parser takes it: with dashes, underscores, or some of each."""
    return "--" + "".join(rng.choice("-_") if letter == "-" else letter for letter in option[2:])


def valued(rng: random.Random, option: str, value: str) -> list[str]:
    name = spelled(rng, option)
    return [f"{name}={value}"] if rng.random() < 0.5 else [name, value]


def write_result(file: Path, words: list[str]) -> None:
    """A result of ours that names a command."""
    from unslant.responses.provenance import META_NAME, Provenance

    block = Provenance(command=words).model_dump()
    if file.suffix == ".html":
        file.write_text(f'<meta name="{META_NAME}" content="{escape(json.dumps([block]))}">')
    else:
        file.write_text(json.dumps({"provenance": block}))


def settings(options: Options) -> Row:
    """``unslant.toml`` in the working folder that decides what must be typed; named with --config, it may."""
    row, rng = Row("hostile", "settings in the working folder", FILES), random.Random(options.seed)
    server = Listening()
    with server.running() as host, _folder(MY_SECRET="x" * 20) as folder:
        values: dict[str, object] = {
            "trust-remote-code": True, "base-url": f"http://{host}/v1", "header": ["X: $MY_SECRET"],
            "extra-body": '{"user": "x"}', "ray": "10.0.0.1:6379", "adapter": "/tmp/a", "template": "../t.toml",
            "json": "/tmp/unslant-hostile.json", "store": "../s.sqlite3", "out": "../out", "shots-from": "/etc/passwd",
        }  # fmt: skip
        for case in range(FILES):
            name = rng.choice(list(values))
            key = "".join(rng.choice("-_") if letter == "-" else letter for letter in name)
            written = json.dumps([values[name]] if rng.random() < 0.2 and name == "base-url" else values[name])
            (folder / "unslant.toml").write_text(f"[audit]\nlimit = 2\n{key} = {written}\n")
            code, told = run("audit", "fair", "q.jsonl")
            if code != 2 or f"type --{name}" not in told or "--config" not in told or server.heard:
                row.fail(f"{case}: {key} = {written}: exit {code}: {told[-200:]!r}")
                server.heard.clear()
    row.note = "refused in one line that says how to type it"
    return row


# Secrets


def _secret(rng: random.Random, odd: bool = False) -> str:
    letters = string.ascii_letters + string.digits
    found = "".join(rng.choice(letters) for _ in range(24))
    return found[:8] + rng.choice("/?#@:%&= ") + found[8:16] + rng.choice("/@+") + found[16:] if odd else found


def planted(rng: random.Random, host: str) -> tuple[list[str], list[str]]:
    """Words of a command with secrets in every option that can take one, and the texts that must be nowhere."""
    password, key, header, body = (_secret(rng) for _ in range(4))
    user = f"ann:{password}@"
    if rng.random() < 0.4:
        odd = _secret(rng, odd=True)
        user, password = f"ann:{odd if rng.random() < 0.5 else quote(odd, safe='')}@", odd
    words = [
        *valued(rng, "--base-url", f"http://{user}{host}/v1?api_key={key}&api-version=1"),
        *valued(
            rng, "--header", rng.choice((f"X-Key: {header}", f"Authorization: Bearer {header}", f"X-Key:{header}"))
        ),
        *valued(rng, "--extra-body", json.dumps({"user": body, "deep": [{"token": body}], "top_k": 1})),
    ]
    if rng.random() < 0.25:
        words += ["--header", rng.choice((header, f"{header}:", f": {header}", f"a b: {header}"))]
    if rng.random() < 0.15:
        words += ["--extra-body", body]
    parts = [
        part for part in password.replace("%", "/").replace("?", "/").replace("#", "/").split("/") if len(part) > 5
    ]
    secret = [key, header, body, *parts]
    return words, [*secret, *map(quote, secret), base64.b64encode(f"ann:{password}".encode()).decode()]


def secrets(options: Options) -> Row:
    """Runs with secrets everywhere, that end well and badly; then every file, the store and all that was printed."""
    row, rng = Row("hostile", "secrets in records and messages", PLANTED), random.Random(options.seed)
    for case in range(PLANTED):
        key = _secret(rng)
        server = Listening(rng.choice((200, 200, 400, 401, 500)), {"Location": "http://127.0.0.1:9/"})
        with server.running() as host, _folder(UNSLANT_API_KEY=key) as folder:
            words, hidden = planted(rng, host)
            outputs = ["--out", "out", "--tables", "tables", "--store", "s.sqlite3", "--retries", "0"]
            told = run("audit", "m", "q.jsonl", *words, *outputs)[1]
            told += run("audit", f"{_url(words)}#m", "q.jsonl", "--dry-run")[1]
            told += run("runs", "list", "--json", "--store", "s.sqlite3")[1]
            told += run("rerun", "out/numbers.json", "--trust")[1]
            for store in (folder / "s.sqlite3", Path(os.environ["UNSLANT_HOME"]) / "store.sqlite3"):
                run("runs", "list", "--store", store)
            files = [path for place in (folder, Path(os.environ["UNSLANT_HOME"])) for path in place.rglob("*")]
            texts = {str(path): path.read_bytes().decode("utf-8", "replace") for path in files if path.is_file()}
            for place, text in {**texts, "printed": told}.items():
                if found := next((secret for secret in (key, *hidden) if secret and secret in text), None):
                    at = text.index(found)
                    row.fail(f"{case}: {place}: ...{text[max(0, at - 80) : at + 40]!r} {words}")
    row.note = "user info, query, headers, body and key, in JSON, HTML, Parquet, tables, store and everything printed"
    return row


def _url(words: list[str]) -> str:
    joined = next((word.partition("=")[2] for word in words if word.partition("=")[2].startswith("http")), "")
    return joined or next(word for word in words if word.startswith("http"))


# Folders of models


def bomb(rng: random.Random) -> str:
    """A chat template that would run for hours or fill the memory."""
    n, small = rng.choice((10**8, 10**10, "10**9", "9**9")), rng.choice((60, 200, 1000))
    text = rng.choice(("'a'", "messages[0]['content']", "'ab' ~ 'c'", "messages|tojson", "(messages|string)"))
    inner = rng.choice(("x", "{{ loop.index }}", "{% set y = a %}", "{{ messages|tojson }}", "{% if a %}{% endif %}"))
    double = rng.choice(("ns.x + ns.x", "ns.x ~ ns.x", "ns.x * 2", "[ns.x, ns.x]|join", "ns.x|replace('a', 'aa')"))
    nest = rng.choice(("[ns.x, ns.x]", "{'a': ns.x, 'b': ns.x}", "(ns.x, ns.x)"))
    show = rng.choice(("ns.x", "ns.x|tojson", "ns.x|string", "ns.x|length", "ns.x|tojson(indent=2)"))
    loops = "".join(f"{{% for {name} in range(99999) %}}" for name in "abc"[: rng.randint(2, 3)])
    forms = [
        loops + inner + "{% endfor %}" * loops.count("for"),
        f"{{{{ ({text}) * {n} }}}}",
        f"{{% set x = [{text}] * {n} %}}",
        f"{{{{ messages|tojson(indent={n}) }}}}",
        f"{{{{ ({text})|{rng.choice(('center', 'indent'))}({n}) }}}}",
        f"{{{{ ({text}).{rng.choice(('center', 'ljust', 'rjust', 'zfill', 'expandtabs'))}({n}) }}}}",
        f"{{{{ '%{rng.choice((10**9, 10**8))}d' % 1 }}}}",
        f"{{{{ '{{:>{10**9}}}'.format(1) }}}}",
        f"{{% set ns = namespace(x='aa') %}}{{% for i in range({small}) %}}{{% set ns.x = {double} %}}{{% endfor %}}",
        f"{{% set ns = namespace(x=['a']) %}}{{% for i in range({small}) %}}{{% set ns.x = {nest} %}}{{% endfor %}}"
        f"{{{{ {show} }}}}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(90) }}",
        f"{{% for a in range(99999) %}}{{% set x = range(99999)|{rng.choice(('list', 'sum', 'join', 'last'))} %}}"
        "{% endfor %}",
        "{% for a in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}",
        f"{{{{ range(60000)|list|select('in', range(60000)|list|map('string')|list)|list|length * {small} }}}}",
    ]
    found = rng.choice(forms)
    wraps = (
        "{0}", "{{% if messages %}}{0}{{% endif %}}", "{{% for m in messages %}}{0}{{% endfor %}}",
        "{{% macro g() %}}{0}{{% endmacro %}}{{{{ g() }}}}", "{{% set z %}}{0}{{% endset %}}",
        "{{% generation %}}{0}{{% endgeneration %}}", "{{% filter upper %}}{0}{{% endfilter %}}",
    )  # fmt: skip
    return rng.choice(wraps).format(found)


def templates(options: Options) -> Row:
    """Chat templates that never end: each must be refused, within bounds of time and memory."""
    import resource

    from jinja2 import TemplateError

    from unslant.prompts.rendering import TemplateEnvironment

    row, rng, environment, longest = Row("hostile", "chat templates", TEMPLATES), random.Random(options.seed), None, 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in range(TEMPLATES):
        source, started = bomb(rng), time.thread_time()
        try:
            environment = environment or TemplateEnvironment()
            written = environment.from_string(source).render(messages=[{"role": "user", "content": "Which?\nA. b"}])
            if len(written) > 10**6:
                row.fail(f"{case}: {len(written):,} characters: {source}")
        except (TemplateError, ArithmeticError, ValueError, TypeError, RecursionError):
            pass
        except Exception as error:
            row.fail(f"{case}: {type(error).__name__}: {source}")
        taken = time.thread_time() - started
        longest = max(longest, taken)
        if taken > SECONDS:
            row.fail(f"{case}: {taken:.0f} s: {source}")
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if more > 1024:
        row.fail(f"{more:.0f} MB of memory")
    row.note = f"the slowest took {longest:.1f} s; {more:.0f} MB more memory"
    return row


def configurations(options: Options) -> Row:
    """Model folders whose config.json asks for far more than their weights."""
    from unslant.errors import ModelError
    from unslant.models.hf.loading import load_model
    from unslant.reference import reference_path

    row, rng, longest = Row("hostile", "configurations of models", CONFIGURATIONS), random.Random(options.seed), 0.0
    whole = json.loads((reference_path("fair") / "config.json").read_text())
    names = ["num_hidden_layers", "num_labels", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads"]
    others = ({"model_type": "gpt2", "n_layer": 0}, {"model_type": "mixtral", "num_local_experts": 0})
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "model")
        shutil.copytree(reference_path("fair"), folder)
        for case in range(CONFIGURATIONS):
            large = rng.choice((10**7, 10**8, 10**9, 10**12, 10**20)) + rng.randrange(1000)
            change = rng.choice(({rng.choice(names): large}, dict.fromkeys(rng.sample(names, 2), large), *others))
            change = {name: large if value == 0 else value for name, value in change.items()}
            config = whole | (change if rng.random() < 0.8 else {"text_config": {"num_hidden_layers": large}})
            (folder / "config.json").write_text(json.dumps(config))
            started = time.thread_time()
            try:
                load_model(str(folder))
                row.fail(f"{case}: loaded: {change}")
            except ModelError as error:
                if len(str(error).splitlines()) != 1:
                    row.fail(f"{case}: several lines: {change}")
            except Exception as error:
                row.fail(f"{case}: {type(error).__name__}: {change}")
            longest = max(longest, time.thread_time() - started)
            if longest > SECONDS:
                row.fail(f"{case}: {longest:.0f} s: {change}")
    row.note = f"refused before anything is built; the slowest took {longest:.1f} s"
    return row


def zeros(options: Options) -> Row:
    """A GGUF file with a stretch of zeros in its weights, anywhere; and the whole file, which must be read."""
    import numpy as np
    from gguf import GGUFWriter

    from unslant.models.hf.sanity import holes

    row, rng = Row("hostile", "GGUF with zeros", 31), random.Random(options.seed)
    weights = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "m.gguf")
        writer = GGUFWriter(path, "llama")
        for number in range(6):
            writer.add_tensor(f"blk.{number}.ffn_up.weight", weights.normal(size=(512, 256)).astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        whole = path.read_bytes()
        if holes(path):
            row.fail("the whole file")
        for _ in range(row.attempts - 1):
            length = rng.randrange(16_384, 400_000)
            at = rng.randrange(4_096, len(whole) - length)
            path.write_bytes(whole[:at] + bytes(length) + whole[at + length :])
            if not holes(path):
                row.fail(f"{length:,} bytes at {at:,}")
    row.note = "named, and refused without --allow-missing"
    return row
