"""The bot of the examples: it has a text summarised by a model and prints the summary.

The model is a toy on this machine's loopback that the bot starts itself, so the example needs no network
of anyone's. With ``--report-usage`` the bot also tries to tell its maker how often it ran: to 192.0.2.1,
an address that RFC 5737 sets aside for documentation. Like many programs it keeps quiet when that fails.
"""

from __future__ import annotations

import socket
import sys
import threading

MAKER = ("192.0.2.1", 443)


def serve_one(listener: socket.socket) -> None:
    """Be the model: answer one request with the first sentence of what came in."""
    peer, _ = listener.accept()
    with peer, peer.makefile("rb") as request:
        text = request.read().decode("utf-8")
        peer.sendall((text.split(".")[0].strip() + ".").encode("utf-8"))


def summarise(text: str) -> str:
    """Send *text* to the model over loopback and return what it says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model = threading.Thread(target=serve_one, args=(listener,))
        model.start()
        with socket.create_connection(listener.getsockname(), timeout=10) as connection:
            connection.sendall(text.encode("utf-8"))
            connection.shutdown(socket.SHUT_WR)
            answer = connection.makefile("rb").read().decode("utf-8")
        model.join()
    return answer


def report_usage() -> None:
    """Tell the maker, if the maker can be reached."""
    try:
        with socket.create_connection(MAKER, timeout=2) as connection:
            connection.sendall(b"ran once\n")
    except OSError:
        pass


def main() -> None:
    """Summarise the file that the command line names."""
    *options, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        print(summarise(file.read()))
    if "--report-usage" in options:
        report_usage()


if __name__ == "__main__":
    main()
