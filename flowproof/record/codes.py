"""The typed codes of faults and of verdicts that are not a pass, each with what to do about it."""

from __future__ import annotations

from enum import Enum

__all__ = ["ADVICE", "Code"]


class Code(Enum):
    """Why a rule could not be judged, or a mechanism call failed. Never parsed from prose."""

    NOT_STARTED = "NOT_STARTED"  # the command never ran
    COMMAND_NOT_FOUND = "COMMAND_NOT_FOUND"
    COMMAND_EXIT = "COMMAND_EXIT"  # it ended otherwise than expected
    COMMAND_SIGNAL = "COMMAND_SIGNAL"
    COMMAND_TIMEOUT = "COMMAND_TIMEOUT"
    INTERRUPTED = "INTERRUPTED"  # Ctrl-C or SIGTERM
    SURVIVORS = "SURVIVORS"  # processes outlived the command and had to be ended
    SUPERVISOR_LOST = "SUPERVISOR_LOST"
    SUPERVISOR_BUG = "SUPERVISOR_BUG"  # an unexpected exception in it
    UNANSWERED = "UNANSWERED"  # notifications received and not answered
    CHILD_MEMORY = "CHILD_MEMORY"  # the memory of the calling process is unreadable
    CHILD_RESULT = "CHILD_RESULT"  # process_vm_writev refused
    CHILD_HANDLE = "CHILD_HANDLE"  # pidfd_open refused
    CHILD_DESCRIPTOR = "CHILD_DESCRIPTOR"  # pidfd_getfd refused
    CHILD_PROCESS = "CHILD_PROCESS"  # /proc of the calling process is unreadable
    PATH = "PATH"  # where a path leads cannot be told
    SOCKET_LIST = "SOCKET_LIST"  # the unix sockets of the namespace are not told
    IDENTITY = "IDENTITY"  # root may not take on the caller's user
    LISTENER_BUSY = "LISTENER_BUSY"  # a seccomp listener is installed already
    LISTENER_RECEIVE = "LISTENER_RECEIVE"
    LISTENER_VALID = "LISTENER_VALID"
    LISTENER_SEND = "LISTENER_SEND"
    NO_NEW_PRIVS = "NO_NEW_PRIVS"  # prctl(PR_SET_NO_NEW_PRIVS) refused
    DOMAIN = "DOMAIN"  # Landlock is there, and its calls are refused
    FILTER_INSTALL = "FILTER_INSTALL"
    WAIT_KILLABLE = "WAIT_KILLABLE"  # SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV missing (Linux < 5.19)
    NOTIFICATION_SIZES = "NOTIFICATION_SIZES"
    SUBREAPER = "SUBREAPER"  # prctl(PR_SET_CHILD_SUBREAPER) refused
    UNDUMPABLE = "UNDUMPABLE"  # prctl(PR_SET_DUMPABLE) refused
    DESCRIPTORS = "DESCRIPTORS"  # close_range refused
    THREADS = "THREADS"  # no process or thread to be had
    ENDING = "ENDING"  # kill refused
    INTERRUPTION = "INTERRUPTION"  # tgkill refused
    SELF_TEST = "SELF_TEST"
    CANARY = "CANARY"  # the known-refused call was not refused and recorded
    HANDSHAKE = "HANDSHAKE"  # start-up did not finish in time
    PERFORM = "PERFORM"  # the call could not be performed for the program
    WORKERS = "WORKERS"  # more blocking calls than the cap
    UNSUPPORTED_CALL = "UNSUPPORTED_CALL"  # control data or flags that cannot be carried over
    EVENTS_LOST = "EVENTS_LOST"
    NAME_UNBOUND = "NAME_UNBOUND"
    VARIABLE_UNSET = "VARIABLE_UNSET"
    VARIABLE_INVALID = "VARIABLE_INVALID"
    NOT_CARRIED = "NOT_CARRIED"  # the artifact does not carry the rule
    NOT_ENFORCED = "NOT_ENFORCED"  # the lane's tier is too weak for the claim
    NOT_OBSERVED = "NOT_OBSERVED"
    NOT_PROVEN = "NOT_PROVEN"  # nothing but its own word says that the artifact means its rules
    NOT_SECLUDED = "NOT_SECLUDED"  # the command could act through processes outside of the run
    NOT_SHIELDED = "NOT_SHIELDED"  # the command could signal the supervisor
    UNASSERTED = "UNASSERTED"  # a control without a rule that can be judged
    PLATFORM = "PLATFORM"  # this platform has no runner
    RECORD_TORN = "RECORD_TORN"


ADVICE: dict[Code, str] = {
    Code.NOT_STARTED: "the command never started, so nothing was shown; see the other reasons",
    Code.COMMAND_NOT_FOUND: "check `command` and `cwd`, and the PATH that flowproof was started with",
    Code.COMMAND_EXIT: "see from its output why, or set `expect_exit` to the code that is right",
    Code.COMMAND_SIGNAL: "find out what ended the command; a signal is never an expected end",
    Code.COMMAND_TIMEOUT: "raise `timeout`, or make the command end sooner",
    Code.INTERRUPTED: "let the run end by itself",
    Code.SURVIVORS: "make the command wait for the processes that it starts",
    Code.SUPERVISOR_LOST: "find out what ended the supervisor (the kernel log tells of memory); run again",
    Code.SUPERVISOR_BUG: "this is a bug in flowproof; please report it with the record",
    Code.UNANSWERED: "run again; if it stays, this is a bug in flowproof",
    Code.CHILD_MEMORY: (
        "run the program as the same user with Yama's ptrace_scope at 0 or 1 and without"
        " PR_SET_DUMPABLE=0, or give flowproof CAP_SYS_PTRACE"
    ),
    Code.CHILD_RESULT: "allow process_vm_writev in the outer filter",
    Code.CHILD_HANDLE: "allow pidfd_open in the outer filter, and more open files (`ulimit -n`)",
    Code.CHILD_DESCRIPTOR: (
        "allow pidfd_getfd: in a container add CAP_SYS_PTRACE, elsewhere set Yama's ptrace_scope to 0 or 1"
    ),
    Code.CHILD_PROCESS: "mount /proc without hidepid for the user that runs flowproof",
    Code.PATH: (
        "run the program without a mount namespace of its own, and where flowproof may search the folders"
        " that it uses; or leave the rules about files to a control of their own"
    ),
    Code.SOCKET_LIST: (
        "allow netlink sockets in the outer filter, on a kernel with CONFIG_UNIX_DIAG (`modprobe unix_diag`)"
    ),
    Code.IDENTITY: (
        "allow setgroups, setresgid and setresuid in the outer filter, and keep CAP_SETUID and CAP_SETGID; or"
        " run flowproof as the user of the program"
    ),
    Code.LISTENER_BUSY: "run outside of the sandbox that holds a seccomp listener already",
    Code.LISTENER_RECEIVE: "allow ioctl SECCOMP_IOCTL_NOTIF_RECV in the outer filter",
    Code.LISTENER_VALID: "allow ioctl SECCOMP_IOCTL_NOTIF_ID_VALID in the outer filter",
    Code.LISTENER_SEND: "allow ioctl SECCOMP_IOCTL_NOTIF_SEND in the outer filter",
    Code.NO_NEW_PRIVS: "allow prctl(PR_SET_NO_NEW_PRIVS) in the outer filter",
    Code.DOMAIN: (
        "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the outer filter,"
        " and nest fewer Landlock domains (the kernel takes 16)"
    ),
    Code.FILTER_INSTALL: "allow seccomp(SECCOMP_SET_MODE_FILTER) in the outer filter, on Linux 5.19 or newer",
    Code.WAIT_KILLABLE: "use Linux 5.19 or newer",
    Code.NOTIFICATION_SIZES: "allow seccomp(SECCOMP_GET_NOTIF_SIZES) in the outer filter",
    Code.SUBREAPER: "allow prctl(PR_SET_CHILD_SUBREAPER) in the outer filter",
    Code.UNDUMPABLE: "allow prctl(PR_SET_DUMPABLE) in the outer filter",
    Code.DESCRIPTORS: "allow close_range in the outer filter",
    Code.THREADS: "allow clone in the outer filter, and more processes and threads (`ulimit -u`)",
    Code.ENDING: "allow kill in the outer filter, so that what outlives the command can be ended",
    Code.INTERRUPTION: "allow tgkill in the outer filter, so that a call that sleeps can be ended",
    Code.SELF_TEST: "run `flowproof doctor` to see which step fails",
    Code.CANARY: (
        "allow connect and listen in the outer filter: the known call was not seen as it was planned"
    ),
    Code.HANDSHAKE: "run again on a less loaded machine; `flowproof doctor` shows each step",
    Code.PERFORM: "allow the call that is named in the outer filter; a fault tells its errno",
    Code.WORKERS: "make the program open fewer blocking connections at once",
    Code.UNSUPPORTED_CALL: "see the fault for the call; such a call is refused",
    Code.EVENTS_LOST: "run again; if it stays, this is a bug in flowproof",
    Code.NAME_UNBOUND: "make the name resolve on this host, or write addresses",
    Code.VARIABLE_UNSET: "set the variable in the environment that flowproof starts in",
    Code.VARIABLE_INVALID: "set the variable to exactly one host, address or CIDR",
    Code.NOT_CARRIED: "see the fidelity table of the artifact",
    Code.NOT_ENFORCED: "run on a host where the lane is enforced; `flowproof doctor` tells",
    Code.NOT_OBSERVED: "run on a host where the lane is observed; `flowproof doctor` tells",
    Code.NOT_PROVEN: (
        "give `run` the policy that the artifact was compiled from (`--policy FILE`): it then proves the"
        " artifact before it runs"
    ),
    Code.NOT_SECLUDED: (
        "run on a kernel with Landlock (`landlock` among the `lsm=`; Linux 6.12 or newer contains, 5.19"
        " observes), or, to observe, as no root with Yama's ptrace_scope at 1"
    ),
    Code.NOT_SHIELDED: (
        "run on Linux 6.12 or newer with `landlock` among the `lsm=`: from there on the command cannot signal"
        " what supervises it; `expect no` and `observe` are judged without"
    ),
    Code.UNASSERTED: "add a rule that can be judged (deny, never or expect no)",
    Code.PLATFORM: "run on Linux; `compile`, `check` and `explain` work everywhere",
    Code.RECORD_TORN: (
        "name a folder that can be written with `--record`, and run again; a record is complete or it"
        " is no evidence"
    ),
}
"""What to do, for each code; every code has its line."""
