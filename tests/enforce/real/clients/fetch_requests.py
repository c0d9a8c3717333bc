"""Fetches the URL given as argument with requests."""

from __future__ import annotations

import hashlib
import sys

import requests

if __name__ == "__main__":
    answer = requests.get(sys.argv[1], timeout=30)
    answer.raise_for_status()
    print(hashlib.sha256(answer.content).hexdigest())
