"""Downloads the peers from Maven Central, starts their servers on this machine, and talks to them.

Each server keeps its data in a folder of its own, on the disk that is measured. A client is a
program in Java of one file. It stays for the whole run and takes one order a line, so that rounds
can take turns without the start of a JVM in between.
"""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.kit.zookeeper import free_ports, zookeeper

BOOKKEEPER = "4.18.0"
KAFKA = "4.3.1"
SERVERS = 3
START_SECONDS = 120.0

_HERE = Path(__file__).parent
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "bkspark-peers"
_OPENED = ("--add-opens=java.base/java.nio=ALL-UNNAMED",)
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bkspark</groupId><artifactId>peer</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>{}</dependencies></project>
"""
_NEEDED = {
    # A server of ZooKeeper is in the jars of BookKeeper, which leave out what only servers need.
    "bookkeeper": (
        f"org.apache.bookkeeper:bookkeeper-server:{BOOKKEEPER}",
        "org.xerial.snappy:snappy-java:1.1.10.8",
        "io.dropwizard.metrics:metrics-core:4.2.30",
    ),
    "kafka": (
        f"org.apache.kafka:kafka_2.13:{KAFKA}",
        f"org.apache.kafka:kafka-clients:{KAFKA}",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    # What Spark has not got already. Newer connectors work with this one's Spark as well.
    "connector": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ),
}
_ALONE = ("connector",)
"""Without what these jars depend on."""


class PeerClient:
    """A client in Java that measures one peer.

    Args:
        name: of the program beside this module, without its ending.
    """

    def __init__(self, name: str, jars: str, address: str, errors: Path) -> None:
        command = ["java", "-Xmx1g", *_QUIET, *_OPENED, "-cp", jars]
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, str(_HERE / f"{name}.java"), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._errors = errors
        self._answer()

    def order(self, *words: object) -> dict[str, float]:
        """Give an order; return its figures."""
        assert self._process.stdin is not None
        print(*words, file=self._process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        raise RuntimeError(f"a client ended:\n{self._errors.read_text(errors='replace')[-3000:]}")


_QUIET = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
    "-Djava.net.preferIPv4Stack=true",
    f"-Dlog4j2.configurationFile={_HERE / 'log4j2.xml'}",
)


def jars_of(peer: str) -> str:
    """Download the jars of ``peer`` once; return their class path."""
    needed = _NEEDED[peer]
    folder = _CACHE / re.sub(r"[^A-Za-z0-9.]+", "-", needed[0])
    if not (folder / "done").exists():
        (folder / "jars").mkdir(parents=True, exist_ok=True)
        alone = _EXCLUDED if peer in _ALONE else ""
        dependencies = "".join(_dependency(one, alone) for one in needed)
        (folder / "pom.xml").write_text(_POM.format(dependencies))
        maven = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime")
        subprocess.run([*maven, "-DoutputDirectory=jars"], cwd=folder, check=True)
        (folder / "done").touch()
    return f"{folder}/jars/*"


def connector() -> str:
    """The jars by which Spark writes to Kafka and reads from it, as ``spark.jars`` wants them."""
    folder = Path(jars_of("connector")).parent
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


_EXCLUDED = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


def _dependency(coordinate: str, alone: str) -> str:
    group, artifact, version = coordinate.split(":")
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{alone}</dependency>"
    )


@contextmanager
def bookkeeper(folder: Path) -> Iterator[PeerClient]:
    """Run three bookies that flush their journal at once, and a client."""
    jars, folder = jars_of("bookkeeper"), folder / "bookkeeper"
    folder.mkdir()
    with zookeeper(folder / "zookeeper") as servers, ExitStack() as stack:
        uri = f"zk+hierarchical://{servers.hosts}/ledgers"
        ports = free_ports(SERVERS)
        files = [_bookie(folder / f"bookie{n}.conf", port, uri) for n, port in enumerate(ports)]
        shell = ("org.apache.bookkeeper.bookie.BookieShell", "-conf", files[0], "initnewcluster")
        with (folder / "init.log").open("wb") as output:
            subprocess.run([*_java(jars), *shell], check=True, stdout=output, stderr=output)
        main = "org.apache.bookkeeper.server.Main"
        for file, port in zip(files, ports):
            stack.enter_context(_server([*_java(jars), main, "--conf", file], port, file))
        client = PeerClient("BookKeeperClient", jars, uri, folder / "client.log")
        stack.callback(client.close)
        yield client


def _bookie(file: Path, port: int, uri: str) -> Path:
    data = file.with_suffix("")
    settings = {
        "bookiePort": port,
        "advertisedAddress": "127.0.0.1",
        "allowLoopback": "true",
        "listeningInterface": "lo",
        "metadataServiceUri": uri,
        "journalDirectories": data / "journal",
        "ledgerDirectories": data / "ledgers",
        "indexDirectories": data / "ledgers",
        "journalFlushWhenQueueEmpty": "true",
        "maxPendingAddRequestsPerThread": 0,
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


@contextmanager
def kafka(folder: Path) -> Iterator[tuple[PeerClient, str]]:
    """Run three brokers, which are controllers too, and a client; with the brokers' addresses."""
    jars, folder = jars_of("kafka"), folder / "kafka"
    folder.mkdir()
    ports = free_ports(2 * SERVERS)
    voters = ",".join(f"{n + 1}@127.0.0.1:{ports[SERVERS + n]}" for n in range(SERVERS))
    with ExitStack() as stack:
        for number in range(SERVERS):
            file = _broker(folder, number + 1, ports[number], ports[SERVERS + number], voters)
            tool = ("kafka.tools.StorageTool", "format", "-t", _KAFKA_ID, "-c", file)
            with (folder / "init.log").open("ab") as output:
                subprocess.run([*_java(jars), *tool], check=True, stdout=output, stderr=output)
            run = [*_java(jars), "kafka.Kafka", file]
            stack.enter_context(_server(run, None, file))
        for port in ports[:SERVERS]:
            _wait(port, folder / "broker1.log")
        brokers = ",".join(f"127.0.0.1:{port}" for port in ports[:SERVERS])
        client = PeerClient("KafkaClient", jars, brokers, folder / "client.log")
        stack.callback(client.close)
        yield client, brokers


_KAFKA_ID = "bksparkPeersOfOneRun00"


def _broker(folder: Path, number: int, port: int, controller: int, voters: str) -> Path:
    settings = {
        "process.roles": "broker,controller",
        "node.id": number,
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": folder / f"broker{number}",
        "offsets.topic.replication.factor": 3,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.min.isr": 2,
        "group.initial.rebalance.delay.ms": 0,
    }
    file = folder / f"broker{number}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def _java(jars: str) -> list[Any]:
    memory = ("-Xmx1g", "-XX:MaxDirectMemorySize=1g", "-Dio.netty.tryReflectionSetAccessible=true")
    return ["java", *memory, *_QUIET, *_OPENED, "-cp", jars]


@contextmanager
def _server(command: Sequence[Any], port: int | None, file: Path) -> Iterator[None]:
    log = file.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, start_new_session=True
        )
    try:
        if port is not None:
            _wait(port, log)
        yield
    finally:
        process.kill()
        process.wait()


def _wait(port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens:\n{log.read_text(errors='replace')[-3000:]}")
