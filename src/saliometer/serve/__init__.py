"""A local page that lists every run in a folder, for people with many: on this machine and to nobody else."""

import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"


def serve(folder: Path, port: int, started: Callable[[str], None] = lambda url: None) -> None:
    """Answer until Ctrl-C; `started` is called with the page's address."""
    import uvicorn

    from saliometer.serve.app import app_of

    app = app_of(folder)
    with _listening(port) as listening:
        url = f"http://{HOST}:{listening.getsockname()[1]}/"
        print(f"Runs in {folder}: {url} (Ctrl-C stops)", flush=True)
        started(url)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
    print("Stopped.")


def _listening(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise ValueError(f"--port {port}: wanted 1 to 65535, or 0 for any that is free")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        raise ValueError(f"cannot listen on port {port} ({error.strerror}): choose another with --port") from error
    return made
