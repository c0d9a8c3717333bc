"""What the original runs as its agent: one chat with the model it names, then the command of the line.

Containment begins with the agent, so that the command is under it; the chat is no part of what is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request


def main() -> None:
    """Chat, then run the words of the command line."""
    base = os.environ["OPENAI_BASE_URL"].rstrip("/")
    body = {"model": "bench", "messages": [{"role": "user", "content": "begin"}]}
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    chat = urllib.request.Request(f"{base}/chat/completions", json.dumps(body).encode(), headers)
    urllib.request.urlopen(chat).read()
    subprocess.run(sys.argv[1:], check=True)


main()
