"""nginx as a target, where it is installed: the fastest one there is to hand."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; keepalive_requests 1000000;
  proxy_temp_path {folder}/a; fastcgi_temp_path {folder}/b;
  uwsgi_temp_path {folder}/c; scgi_temp_path {folder}/d;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ return 200 "ok"; }}
    location ~ /close$ {{ keepalive_timeout 0; return 200 "ok"; }}
  }}
}}
"""
PATIENCE_SECONDS = 10.0


@contextmanager
def an_nginx() -> Iterator[int | None]:
    """Its port while the block lasts; None where there is no nginx."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="betimes-nginx-") as folder:
        port = _free_port()
        file = Path(folder) / "nginx.conf"
        file.write_text(CONFIGURATION.format(folder=folder, port=port), encoding="ascii")
        Path(folder).chmod(0o755)
        process = subprocess.Popen(  # noqa: S603 -- nginx as the machine has it
            [program, "-c", str(file), "-e", f"{folder}/errors"]
        )
        try:
            _until_it_listens(port)
            yield port
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_it_listens(port: int) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
