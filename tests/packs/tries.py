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
        "pkg.actions.githubusercontent.com",
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
            "docs/policy-language.md",
            "https://repost.aws/es/questions/QUhecceRF6R9GuLtmxK_pFJQ/ecs-task-is-not-using-the-role-attached-to-it, read 2026-11-29",
            "https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html, read 2026-11-29",
            "https://docs.github.com/en/copilot/reference/copilot-allowlist-reference (Azure), read 2026-11-29",
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
            "https://docs.docker.com/desktop/troubleshoot-and-support/faqs/linuxfaqs/, read 2026-11-29",
            "https://docs.docker.com/desktop/setup/install/mac-permission-requirements/, read 2026-11-29",
            "https://github.com/containerd/containerd/blob/main/docs/ops.md, read 2026-11-29",
            "https://docs.podman.io/en/v3.0/markdown/podman-system-service.1.html, read 2026-11-29",
            "https://github.com/cri-o/cri-o/blob/main/docs/crio.8.md, read 2026-11-29",
        ),
    ),
    "d-bus": Try(
        (
            *_run_and_var("system-bus", "dbus/system_bus_socket"),
            *_sockets("systemd", "/run/systemd/private"),
        ),
        (),
        (
            "https://github.com/systemd/systemd/commit/1ae383a8a3ae4824453e297352fda603d2d3fd5e, read 2026-11-29",
            "https://github.com/systemd/systemd/blob/main/man/systemd.xml, read 2026-11-29",
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
        (
            "https://github.com/git/git/blob/master/Documentation/gitprotocol-http.txt, read 2026-11-29",
            "https://man.archlinux.org/man/git-daemon.1.en, read 2026-11-29",
        ),
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
            "https://docs.github.com/en/actions/reference/runners/self-hosted-runners, read 2026-11-29",
            "https://docs.github.com/en/actions/reference/openid-connect-reference, read 2026-11-29",
            "https://docs.github.com/en/copilot/reference/copilot-allowlist-reference, read 2026-11-29",
            "https://github.com/actions/runner/blob/main/src/Runner.Listener/Checks/ActionsCheck.cs, read 2026-11-29",
            "https://github.com/aquasecurity/trivy/blob/main/docs/docs/references/troubleshooting.md (ghcr.io), read 2026-11-29",
        ),
    ),
    "key-agents": Try(
        (
            *_sockets("gpg-agent", "~/.gnupg/S.gpg-agent", "~/.gnupg/S.gpg-agent.ssh"),
            *_sockets(
                "password-agent",
                "~/.1password/agent.sock",
                "~/.bitwarden-ssh-agent.sock",
                "~/snap/bitwarden/current/.bitwarden-ssh-agent.sock",
                "~/.var/app/com.bitwarden.desktop/data/.bitwarden-ssh-agent.sock",
            ),
        ),
        (),
        (
            "https://github.com/gpg/gnupg/blob/master/common/homedir.c, read 2026-11-29",
            "https://developer.1password.com/llms-ssh.txt, read 2026-11-29",
            "https://bitwarden.com/help/ssh-agent/, read 2026-11-29",
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
            "https://platform.claude.com/docs/en/api/overview.md, read 2026-11-29",
            "https://developers.openai.com/api/docs/guides/workload-identity-federation/github-actions, read 2026-11-29",
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
            "https://packaging.python.org/en/latest/specifications/simple-repository-api/, read 2026-11-29",
            "https://peps.python.org/pep-0503/, read 2026-11-29",
        ),
    ),
    "session-bus": Try(
        (
            *(
                attempt
                for rule, path in (
                    ("session-bus", "bus"),
                    ("user-systemd", "systemd/private"),
                    ("rootless-docker", "docker.sock"),
                    ("rootless-podman", "podman/podman.sock"),
                )
                for attempt in _sockets(rule, f"${{XDG_RUNTIME_DIR}}/{path}")
            ),
            *_sockets(
                "session-gpg-agent",
                *(
                    f"${{XDG_RUNTIME_DIR}}/gnupg/S.gpg-agent{kind}"
                    for kind in ("", ".ssh", ".extra", ".browser")
                ),
            ),
        ),
        (("XDG_RUNTIME_DIR", SESSION),),
        (
            "https://github.com/systemd/systemd/commit/e9b1d28de3c4f77aa0e30448fc2665915c4f2142, read 2026-11-29",
            "https://docs.podman.io/en/v3.0/markdown/podman-system-service.1.html, read 2026-11-29",
            "https://docs.docker.com/engine/security/rootless/tips/, read 2026-11-29",
            "https://www.red-bean.com/doc/gnupg/examples/systemd-user/README, read 2026-11-29",
        ),
    ),
}
"""Each shipped pack by its name."""
