"""What the kernel has killed in this sandbox for want of memory, where it says so: in a container, by its control group."""

# Of version 2 and of version 1 of control groups.
SOURCES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def count():
    """Processes killed so far; 0 where nobody counts them."""
    for source in SOURCES:
        try:
            with open(source, encoding="ascii") as file:
                lines = dict(line.split() for line in file)
        except (OSError, ValueError):
            continue
        return int(lines.get("oom_kill", 0))
    return 0
