"""The web server of the real programs: files, a git repository, an index of wheels, a registry of packages.

Run as ``web_origin.py FOLDER PORT``; it serves on 127.0.0.1. FOLDER holds what `web_content.py` put there:
``files/`` is served as it is, ``git/`` through ``git http-backend``, ``registry/NAME.json`` as the document
of a package with the tarballs beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

__all__: list[str] = []


class Origin(BaseHTTPRequestHandler):
    """One request after the other on a connection that is kept."""

    protocol_version = "HTTP/1.1"
    folder = "."

    def _answer(self, status: int, body: bytes, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self) -> None:  # the name that http.server calls
        body = self._body()
        path = unquote(urlsplit(self.path).path)
        if ".." in path:
            self._answer(400, b"no such path\n")
        elif path.startswith("/git/"):
            self._git(path.removeprefix("/git"), body)
        elif path.startswith("/registry/"):
            self._package(path.removeprefix("/registry/"))
        else:
            self._file(os.path.join(self.folder, "files", path.strip("/")), path)

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815  # names that http.server calls

    def _file(self, found: str, path: str) -> None:
        if os.path.isdir(found):
            names = sorted(os.listdir(found))
            links = "".join(f'<a href="{path.rstrip("/")}/{n}">{n}</a>\n' for n in names)
            self._answer(
                200, f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html"
            )
        elif os.path.isfile(found):
            with open(found, "rb") as file:
                self._answer(200, file.read())
        else:
            self._answer(404, b"not here\n", "text/plain")

    def _package(self, name: str) -> None:
        at = os.path.join(self.folder, "registry")
        if name.startswith("-/npm/v1/security/"):  # nothing is known against any package
            self._answer(200, b"{}", "application/json")
        elif os.path.isfile(os.path.join(at, f"{name}.json")):
            with open(os.path.join(at, f"{name}.json"), encoding="utf-8") as file:
                document = json.load(file)
            for version in document["versions"].values():
                tarball = version["dist"]["tarball"]
                version["dist"]["tarball"] = f"http://{self.headers['Host']}/registry/{tarball}"
            self._answer(200, json.dumps(document).encode(), "application/json")
        elif os.path.isfile(os.path.join(at, name)):
            with open(os.path.join(at, name), "rb") as file:
                self._answer(200, file.read())
        else:
            self._answer(404, b"{}", "application/json")

    def _git(self, path: str, body: bytes) -> None:
        """Answer through git's own CGI program (RFC 3875, git-http-backend(1))."""
        ran = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env={
                **os.environ,
                "GIT_PROJECT_ROOT": os.path.join(self.folder, "git"),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": urlsplit(self.path).query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "REMOTE_ADDR": self.client_address[0],
            },
            stdout=subprocess.PIPE,
            check=False,
        )
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode("latin-1").splitlines() if line)
        status = int(fields.get("Status", "200").split()[0]) if not ran.returncode else 500
        self._answer(status, content, fields.get("Content-Type", "text/plain"))


class Server(ThreadingHTTPServer):
    """Many clients at once; none holds up another."""

    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    Origin.folder = sys.argv[1]
    with Server(("127.0.0.1", int(sys.argv[2])), Origin) as server:
        print("ready", flush=True)
        server.serve_forever()
