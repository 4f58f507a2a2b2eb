"""Real ZooKeeper servers for tests, from the jars inside the installed pyspark.

    with zookeeper(folder) as servers:              # one server
    with zookeeper(folder, count=3) as servers:     # an ensemble
        store = format_store(f"zk://{servers.hosts}/bkspark")

The rule: **nothing is mocked, and nothing outlives the block.** Servers listen on this machine
only, on ports that were free, and keep their data and output in ``folder``. Each server can be
killed, paused and started again; sessions, data and their failures are real. Nothing is downloaded:
the servers only need ``java`` (``missing()`` tells if it is not installed).
"""

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

# The jars of Spark that a server needs; fewer jars start faster.
_JARS = (
    "zookeeper-",
    "metrics-core-",
    "netty-",
    "snappy-java-",
    "slf4j-api-",
    "log4j-",
    "commons-",
)
_TICK_MS = 500
_START_SECONDS = 30.0
_START_TRIES = 3
_POLL_SECONDS = 0.05


def missing() -> str:
    """The obstacle to running servers here; empty if there is none."""
    if shutil.which("java") is None:
        return "java is not installed"
    if not any(_jars().glob("zookeeper-*.jar")):
        return "the installed pyspark has no ZooKeeper in it"
    return ""


class ZooKeeperServer:
    """A server process."""

    def __init__(self, folder: Path, port: int, secure_port: int) -> None:
        self.address = f"127.0.0.1:{secure_port or port}"
        self._folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process with the previous process's data; does not wait."""
        assert self._process is None, "it runs already"
        with (self._folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [*_java(), "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # So that an interrupt at the keyboard reaches only the tests.
                start_new_session=True,
            )

    def kill(self) -> None:
        """``kill -9``, paused or not; no effect if not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop the server from receiving and answering; its connections stay."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def restart(self) -> None:
        """Kill and start the server, and wait until it serves."""
        self.kill()
        self.start()
        self.wait()

    def role(self) -> str:
        """``standalone``, ``leader`` or ``follower``; empty until the server serves."""
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection,
        ):
            connection.sendall(b"srvr")
            while part := connection.recv(4096):
                answer += part
        modes = [line for line in answer.decode().splitlines() if line.startswith("Mode: ")]
        return modes[0].removeprefix("Mode: ") if modes else ""

    def wait(self) -> None:
        """Return when the server serves.

        Raises:
            RuntimeError: the server ended or takes too long; with its last output.
        """
        end = time.monotonic() + _START_SECONDS
        while not self.role():
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                output = (self._folder / "output.txt").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"ZooKeeper at {self.address} does not serve:\n{output}")
            time.sleep(_POLL_SECONDS)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None, "it does not run"
        self._process.send_signal(number)


class ZooKeeperServers:
    """A single server, or an ensemble."""

    def __init__(self, servers: list[ZooKeeperServer]) -> None:
        self.servers = servers

    @property
    def hosts(self) -> str:
        """The servers, as in ``zk://<hosts>/path``."""
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        """Start all servers and wait until each serves."""
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def leader(self) -> ZooKeeperServer:
        """The present leader; waits for an election. No server may be paused."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            for server in self.servers:
                if server.role() in ("leader", "standalone"):
                    return server
            time.sleep(_POLL_SECONDS)
        raise RuntimeError(f"none of {self.hosts} leads")


@contextlib.contextmanager
def zookeeper(
    folder: Path,
    count: int = 1,
    *,
    tls: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[ZooKeeperServers]:
    """Run servers for a block: ready at its begin, gone after its end in any case.

    Args:
        settings: more settings of ZooKeeper.
        tls: settings of ZooKeeper for connections by TLS; then ``hosts`` are those that take it.
    """
    with contextlib.ExitStack() as stack:
        yield _start(folder, count, tls or {}, settings or {}, stack)


def _start(
    folder: Path,
    count: int,
    tls: Mapping[str, str],
    settings: Mapping[str, str],
    stack: contextlib.ExitStack,
) -> ZooKeeperServers:
    for attempt in range(1, _START_TRIES + 1):
        servers = _configure(folder / f"start-{attempt}", count, tls, settings)
        stack.callback(servers.kill)
        try:
            servers.start()
        except RuntimeError:
            # Another process may have taken a port between the choice and the start.
            servers.kill()
            if attempt == _START_TRIES:
                raise
        else:
            return servers
    raise AssertionError("unreachable")


def _configure(
    folder: Path, count: int, tls: Mapping[str, str], settings: Mapping[str, str]
) -> ZooKeeperServers:
    ports = free_ports(4 * count)
    peers = [
        f"server.{number}=127.0.0.1:{ports[count + number]}:{ports[2 * count + number]}"
        for number in range(count)
    ]
    servers = []
    for number in range(count):
        home = folder / f"server-{number}"
        (home / "data").mkdir(parents=True)
        (home / "data" / "myid").write_text(f"{number}\n")
        lines = [
            f"dataDir={home / 'data'}",
            f"clientPort={ports[number]}",
            "clientPortAddress=127.0.0.1",
            f"tickTime={_TICK_MS}",
            "initLimit=20",
            "syncLimit=4",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr",
            *(peers if count > 1 else []),
            *(f"{key}={value}" for key, value in settings.items()),
        ]
        secure = ports[3 * count + number] if tls else 0
        if tls:
            lines.append(f"secureClientPort={secure}")
            lines += [f"{key}={value}" for key, value in tls.items()]
        (home / "zoo.cfg").write_text("\n".join(lines) + "\n")
        servers.append(ZooKeeperServer(home, ports[number], secure))
    return ZooKeeperServers(servers)


def _java() -> list[str]:
    jars = sorted(str(jar) for jar in _jars().glob("*.jar") if jar.name.startswith(_JARS))
    return [
        "java",
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        # KiB that a log takes at once; 64 MiB otherwise.
        "-Dzookeeper.preAllocSize=1024",
        "-cp",
        ":".join(jars),
    ]


def _jars() -> Path:
    # Found, not imported: importing pyspark takes long.
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin or "").parent / "jars" if spec else Path("no-pyspark")


def free_ports(count: int) -> list[int]:
    """Different free ports."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
