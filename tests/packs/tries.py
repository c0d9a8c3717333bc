"""What each shipped pack is tried with: the attempts, and the line of the pack that each one is there for."""

from __future__ import annotations

from flowproof.values import Value

__all__ = ["HOME", "NAMES", "SESSION", "TRIES", "Attempt", "Try"]

HOME, SESSION = "/run/home", "/run/user/1000"
"""The user's folders in the world that the packs are tried in."""


class Attempt(Value):
    """One attempt and what must become of it. *kind*: tcp, listen or unix; *by* None: let through, else the
    rule that must refuse it. *rule* is the rule, and *line* the member of its set or of ``uses``, that it
    is there for.
    """

    kind: str
    host: str
    port: int
    by: str | None
    rule: str | None
    line: str | None = None


class Try(Value):
    """The attempts on one pack, the environment that it is run with, and the sources that it must name."""

    attempts: tuple[Attempt, ...]
    env: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]


_GITHUB = {
    "github": ("github.com", "api.github.com", "codeload.github.com", "uploads.github.com"),
    "github-files": (
        "objects.githubusercontent.com",
        "release-assets.githubusercontent.com",
        "raw.githubusercontent.com",
    ),
    "github-services": (
        "token.actions.githubusercontent.com",
        "pipelines.actions.githubusercontent.com",
        "results-receiver.actions.githubusercontent.com",
    ),
    "github-packages": ("ghcr.io", "pkg-containers.githubusercontent.com"),
}
_OWN = ("index.flow.test", "files.flow.test", "git.flow.test", "model.flow.test", "other.flow.test")
NAMES = {
    name: f"203.0.113.{number}"
    for number, name in enumerate((*_OWN, *(h for hosts in _GITHUB.values() for h in hosts)), 1)
}
"""The names of the tries, an address of the documentation range each (RFC 5737)."""


def _open(host: str, rule: str, line: str | None = None, port: int = 443) -> Attempt:
    return Attempt("tcp", host, port, None, rule, line)


def _shut(host: str, by: str, rule: str | None = None, port: int = 443) -> Attempt:
    return Attempt("tcp", host, port, by, rule or by)


def _sockets(rule: str, *paths: str) -> tuple[Attempt, ...]:
    lines = len(paths) > 1
    return tuple(
        Attempt(
            "unix",
            path.replace("~", HOME).replace("${XDG_RUNTIME_DIR}", SESSION),
            0,
            rule,
            rule,
            f"unix:{path}" if lines else None,
        )
        for path in paths
    )


def _run_and_var(rule: str, path: str, *more: str) -> tuple[Attempt, ...]:
    return _sockets(rule, f"/run/{path}", f"/var/run/{path}", *more)


_METADATA = ("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200")
_CONTAINER = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")

TRIES = {
    "baseline": Try(
        (
            Attempt(
                "tcp",
                "169.254.169.254",
                80,
                "baseline/metadata",
                None,
                "cloud-metadata.policy.yaml",
            ),
            Attempt(
                "unix",
                "/run/docker.sock",
                0,
                "baseline/docker",
                None,
                "container-engines.policy.yaml",
            ),
            Attempt(
                "unix",
                "/run/dbus/system_bus_socket",
                0,
                "baseline/system-bus",
                None,
                "d-bus.policy.yaml",
            ),
            Attempt(
                "unix",
                f"{HOME}/.gnupg/S.gpg-agent",
                0,
                "baseline/gpg-agent",
                None,
                "key-agents.policy.yaml",
            ),
        ),
        (),
        ("docs/packs.md",),
    ),
    "cloud-metadata": Try(
        (
            *(Attempt("tcp", host, 80, "metadata", "metadata") for host in _METADATA),
            *(
                Attempt("tcp", host, 80, "container-credentials", "container-credentials", host)
                for host in _CONTAINER
            ),
        ),
        (),
        (
            "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html",
            "https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html",
            "https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html",
            "https://learn.microsoft.com/en-us/azure/virtual-network/what-is-ip-address-168-63-129-16",
        ),
    ),
    "container-engines": Try(
        (
            *_run_and_var(
                "docker",
                "docker.sock",
                "~/.docker/run/docker.sock",
                "~/.docker/desktop/docker.sock",
            ),
            *_run_and_var("containerd", "containerd/containerd.sock"),
            *_run_and_var("podman", "podman/podman.sock"),
            *_run_and_var("cri", "crio/crio.sock"),
        ),
        (),
        (
            "https://docs.docker.com/engine/security/#docker-daemon-attack-surface",
            "https://github.com/containerd/containerd/blob/main/docs/ops.md",
            "https://docs.podman.io/en/latest/markdown/podman-system-service.1.html",
            "https://github.com/cri-o/cri-o/blob/main/docs/crio.8.md",
        ),
    ),
    "d-bus": Try(
        (
            *_run_and_var("system-bus", "dbus/system_bus_socket"),
            *_sockets("systemd", "/run/systemd/private"),
        ),
        (),
        (
            "https://dbus.freedesktop.org/doc/dbus-specification.html#message-bus-types-system",
            "https://github.com/systemd/systemd/blob/main/man/systemd.xml",
        ),
    ),
    "git-https": Try(
        (
            _open("git.flow.test", "git-https"),
            _shut("other.flow.test", "git-https.default.connect", "git-https"),
            _shut("git.flow.test", "git-ssh", port=22),
            _shut("git.flow.test", "git-daemon", port=9418),
        ),
        (("GIT_HOST", "git.flow.test"),),
        ("https://git-scm.com/docs/gitprotocol-http", "https://git-scm.com/docs/git-daemon"),
    ),
    "github-actions": Try(
        (
            *(
                _open(host, rule, f"{host}:443")
                for rule, hosts in _GITHUB.items()
                for host in hosts
            ),
            _shut("other.flow.test", "github-actions.default.connect", "rules"),
        ),
        (),
        (
            "https://docs.github.com/en/actions/reference/runners/self-hosted-runners",
            "https://docs.github.com/en/actions/concepts/security/openid-connect",
        ),
    ),
    "key-agents": Try(
        (
            *_sockets("gpg-agent", "~/.gnupg/S.gpg-agent", "~/.gnupg/S.gpg-agent.ssh"),
            *_sockets("password-agent", "~/.1password/agent.sock", "~/.bitwarden-ssh-agent.sock"),
        ),
        (),
        (
            "https://www.gnupg.org/documentation/manuals/gnupg/Agent-Options.html",
            "https://developer.1password.com/docs/ssh/agent/",
            "https://bitwarden.com/help/ssh-agent/",
        ),
    ),
    "llm-api": Try(
        (
            _open("model.flow.test", "llm-api"),
            _shut("model.flow.test", "llm-api.default.connect", "llm-api", port=22),
            _shut("other.flow.test", "llm-api.default.connect", "llm-api"),
        ),
        (("LLM_API", "model.flow.test"),),
        (
            "https://docs.anthropic.com/en/api/overview",
            "https://platform.openai.com/docs/api-reference/introduction",
        ),
    ),
    "no-egress": Try(
        (
            _shut("other.flow.test", "nothing"),
            Attempt("listen", NAMES["other.flow.test"], 8080, "no-server", "no-server"),
            Attempt("tcp", "127.0.0.1", 8443, None, "rules"),
        ),
        (),
        ("docs/policy-language.md",),
    ),
    "package-index": Try(
        (
            _open("index.flow.test", "package-index"),
            _open("files.flow.test", "package-files"),
            _shut("other.flow.test", "package-index.default.connect", "rules"),
        ),
        (("PACKAGE_INDEX", "index.flow.test"), ("PACKAGE_FILES", "files.flow.test")),
        (
            "https://packaging.python.org/en/latest/specifications/simple-repository-api/",
            "https://peps.python.org/pep-0503/",
        ),
    ),
    "session-bus": Try(
        tuple(
            attempt
            for rule, path in (
                ("session-bus", "bus"),
                ("user-systemd", "systemd/private"),
                ("rootless-docker", "docker.sock"),
                ("rootless-podman", "podman/podman.sock"),
            )
            for attempt in _sockets(rule, f"${{XDG_RUNTIME_DIR}}/{path}")
        ),
        (("XDG_RUNTIME_DIR", SESSION),),
        (
            "https://specifications.freedesktop.org/basedir-spec/latest/",
            "https://dbus.freedesktop.org/doc/dbus-daemon.1.html",
            "https://docs.docker.com/engine/security/rootless/",
        ),
    ),
}
"""Each shipped pack by its name."""
