"""The flows that are measured."""

from __future__ import annotations

__all__ = ["contained", "many_addresses", "many_rules", "twelve", "watched"]


def _flow(rules: dict[str, str], command: list[str]) -> dict[str, object]:
    return {
        "name": "a measured flow",
        "agent": {"command": command, "timeout": "5m"},
        "control": {"id": "bench", "rules": rules},
    }


def contained(command: list[str], *, also: str = "10.99.0.1") -> dict[str, object]:
    """Return the flow that the runtime rows run under; loopback is let through by its exemption."""
    rules = {
        "bench.api": f"allow connect to {also}, 203.0.113.0/24:443",
        "bench.metadata": "never connect to metadata",
        "bench.rest": "deny connect to anything else",
    }
    return _flow(rules, command)


def watched(command: list[str], verb: str, folder: str) -> dict[str, object]:
    """Return a flow in which deletes under *folder* are observed by *verb*, and no connect is tried."""
    rules = {
        "bench.files": f"{verb} delete under {folder}",
        "bench.metadata": "deny connect to metadata",
    }
    return _flow(rules, command)


def twelve() -> dict[str, object]:
    """Return the 12-rule flow of the cold start."""
    rules = {
        "bench.api": "allow connect tcp to api.example.com:443",
        "bench.cdn": "allow connect tcp to cdn.example.com:{80,443}",
        "bench.crm": "allow connect to 203.0.113.0/24:443 except 203.0.113.7:443",
        "bench.db": 'allow connect tcp to "db":5432',
        "bench.dns": "allow connect udp to 198.51.100.53:53",
        "bench.v6": "allow connect to [2001:db8::/32]:443",
        "bench.private": "never connect to private",
        "bench.metadata": "never connect to metadata",
        "bench.mail": "deny connect tcp to 192.0.2.0/24:{25,465,587}",
        "bench.look": "observe connect udp to 198.51.100.53:53",
        "bench.listen": "allow listen on 127.0.0.1:8000-8100",
        "bench.rest": "never connect to anything else",
    }
    return _flow(rules, ["true"])


def _address(number: int) -> str:
    # every second address: neighbours would merge into one interval
    return f"20.{number >> 15 & 255}.{number >> 7 & 255}.{(number & 127) * 2}"


def many_addresses(count: int) -> dict[str, object]:
    """Return a flow with one rule of *count* addresses."""
    listed = ", ".join(f"{_address(n)}:443" for n in range(count))
    return _flow(
        {
            "bench.many": f"allow connect tcp to {listed}",
            "bench.rest": "deny connect to anything else",
        },
        ["true"],
    )


def many_rules(count: int) -> dict[str, object]:
    """Return a flow with *count* rules of one address."""
    rules = {f"bench.r{n}": f"allow connect tcp to {_address(n)}:443" for n in range(count)}
    return _flow({**rules, "bench.rest": "deny connect to anything else"}, ["true"])
