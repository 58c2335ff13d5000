"""The server: a list of runs, and a report of each; it answers to this machine's own names only."""

import os
import secrets
import threading
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from saliometer.pages import book_for, written
from saliometer.report.page import page
from saliometer.report.templates import environment
from saliometer.serve.listed import found, listed, stale

HOSTS = ["127.0.0.1", "localhost"]  # another name that leads here is a trick (DNS rebinding)
SHUT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
REPORT = (
    f"{SHUT}; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"  # as the page itself says
)
PLAIN = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
STYLE = Path(__file__).parent.parent / "report" / "style.css"


def app_of(folder: Path) -> Starlette:
    if not folder.is_dir():
        raise ValueError(f"there is no folder '{folder}': name one with runs in it, such as runs/")
    root, making = folder.resolve(), threading.Lock()  # one report at a time

    def runs(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = (
            environment()
            .get_template("runs.html")
            .render(folder=str(folder), runs=listed(root), nonce=nonce, style=STYLE.read_text(encoding="utf-8"))
        )
        policy = f"{SHUT}; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'"
        return HTMLResponse(text, headers={**PLAIN, "Content-Security-Policy": policy})

    def report(request: Request) -> Response:
        name = request.path_params["name"]
        place = found(root, name)
        if place is None:
            return _said(f"There is no run '{name}' in this folder.", 404)
        try:
            with making:
                text = _page(place)
        except Exception as error:  # shown to the one who asked; the list goes on
            reason = str(error) if isinstance(error, ValueError) else repr(error)
            return _said(f"The report of '{name}' could not be made: {reason}", 500)
        return HTMLResponse(text, headers={**PLAIN, "Content-Security-Policy": REPORT})

    guard = Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False)
    return Starlette(routes=[Route("/", runs), Route("/report/{name:path}", report)], middleware=[guard])


def _page(folder: Path) -> str:
    """The report that is there, or a new one, which is kept where the folder can be written to."""
    there = folder / "report.html"
    if not stale(folder):
        return there.read_text(encoding="utf-8")
    if os.access(folder, os.W_OK):
        return written([folder]).read_text(encoding="utf-8")
    return page(book_for([folder]))


def _said(text: str, status: int) -> Response:
    return PlainTextResponse(text, status, headers={**PLAIN, "Content-Security-Policy": SHUT})
