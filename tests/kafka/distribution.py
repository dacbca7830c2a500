"""The programs and files that every broker of the tests shares: fetched or made once, and kept in the user's cache."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.kafka.listeners import ADMIN, GUEST, STORE_PASSWORD, free_listeners, server_properties

_HERE = Path(__file__).parent
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_OLDEST_JAVA = 17
_ANY_ID = "AAAAAAAAAAAAAAAAAAAAAQ"  # a UUID as Kafka writes it; each broker is given its own


class UnavailableError(Exception):
    """No broker can be started on this machine; the message says what is missing."""


class Distribution(NamedTuple):
    """Where everything is."""

    java: Path
    libraries: Path
    formatted: Path
    """The metadata of a freshly formatted node, with the SCRAM users."""
    keystore: Path
    ca: Path
    """The certificate of the authority that signed the broker's, as PEM."""
    classes: Path
    """The archive of loaded classes: a broker starts sooner with it."""

    def kafka(self, program: str, *arguments: str | Path, archive: str | None = None) -> list[str | Path]:
        """Give the command line of one of Kafka's programs.

        Parameters
        ----------
        program
            The class.
        arguments
            What it is told.
        archive
            The option that names the archive of loaded classes, if another than its use.

        """
        return [
            self.java,
            "-Xmx512m",
            # Nearly all the time until the broker is ready goes into compiling what runs once.
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",  # a broker that is killed would leave its file behind
            archive or f"-XX:SharedArchiveFile={self.classes}",
            f"-Dlog4j2.configurationFile={_HERE / 'log4j2.properties'}",
            # Named one by one and in order, because the archive is only good for one class path.
            "-cp",
            os.pathsep.join(str(jar) for jar in sorted(self.libraries.glob("*.jar"))),
            program,
            *arguments,
        ]


@functools.cache
def distribution() -> Distribution:
    """Find the distribution, or make it, which takes a minute.

    Several processes may ask at once: one makes it, the others wait.

    Raises
    ------
    UnavailableError
        When Java 17 or newer or Maven is missing, or the jars cannot be had or kept.

    """
    java, version = _java()
    made_from = [(_HERE / "pom.xml").read_text(), _COPY, version, *ADMIN, *GUEST]
    name = "kafka-" + hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamkernel-tests"
    home = cache / name
    found = Distribution(
        java=java,
        libraries=home / "libraries",
        formatted=home / "formatted" / "bootstrap.checkpoint",
        keystore=home / "tls" / "broker.p12",
        ca=home / "tls" / "ca.pem",
        classes=home / "classes.jsa",
    )
    if not found.classes.exists():  # it is made last
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(f"the jars of the Kafka broker cannot be kept: {error}") from error
        with _alone(cache / f"{name}.lock"):
            _once(found.libraries, _fetch)
            _once(found.keystore.parent, functools.partial(_certify, java.with_name("keytool")))
            _once(found.formatted.parent, functools.partial(_format, found))
            _once(found.classes, functools.partial(_record_classes, found))
    return found


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    """Write a configuration the way Java reads it."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _java() -> tuple[Path, str]:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise UnavailableError(f"a Kafka broker needs Java {_OLDEST_JAVA} or newer, and there is no java")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)[^"]*"', said)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        raise UnavailableError(f"a Kafka broker needs Java {_OLDEST_JAVA} or newer, and {found} says {said.strip()!r}")
    return Path(found).resolve(), said


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _once(path: Path, make: Callable[[Path], None]) -> None:
    """Make a file or folder completely or not at all."""
    if path.exists():
        return
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder) / path.name
        make(unfinished)
        unfinished.rename(path)


def _run(what: str, command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise UnavailableError(f"{what} failed: " + " ".join(said[:3]))


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("the jars of the Kafka broker come by Maven, and there is no mvn")
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    _run(
        "fetching the jars of the Kafka broker by Maven", [maven, "-B", "-q", "-f", _HERE / "pom.xml", _COPY, *options]
    )


def _certify(keytool: Path, folder: Path) -> None:
    """Make an authority and a certificate for the address 127.0.0.1 alone."""
    folder.mkdir()
    store: list[str | Path] = ["-keystore", folder / "broker.p12", "-storepass", STORE_PASSWORD]
    # Valid since yesterday, for clocks that are moved.
    key = ["-keyalg", "EC", "-groupname", "secp256r1", "-startdate", "-1d", "-validity", "3650"]
    authority = ["-alias", "ca", "-dname", "CN=streamkernel test authority", "-ext", "bc:c=ca:true"]
    broker = ["-alias", "broker", "-dname", "CN=broker", "-signer", "ca", "-ext", "san=ip:127.0.0.1"]
    commands: list[list[str | Path]] = [
        ["-genkeypair", *authority, "-ext", "ku:c=keyCertSign", *key],
        ["-genkeypair", *broker, *key],
        ["-exportcert", "-rfc", "-alias", "ca", "-file", folder / "ca.pem"],
        ["-delete", "-alias", "ca"],  # or the broker might present it as its own
    ]
    for command in commands:
        _run("making a certificate for the Kafka broker", [keytool, *command, *store])


def _format(found: Distribution, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        properties = Path(scratch) / "server.properties"
        write_properties(properties, server_properties(free_listeners(), folder, found.keystore))
        users = [
            argument
            for name, password in (ADMIN, GUEST)
            for argument in ("--add-scram", f"SCRAM-SHA-256=[name={name},password={password}]")
        ]
        arguments: list[str | Path] = ["format", "--cluster-id", _ANY_ID, "--config", properties, *users]
        format_log = found.kafka("kafka.tools.StorageTool", *arguments, archive="-Xshare:auto")
        _run("formatting the Kafka broker's log", format_log)


def _record_classes(found: Distribution, path: Path) -> None:
    """Let a broker start and stop, and keep the classes it had loaded."""
    from tests.kafka.broker import Broker

    with Broker(archive=f"-XX:ArchiveClassesAtExit={path}", installed=found) as broker:
        broker.stop()
