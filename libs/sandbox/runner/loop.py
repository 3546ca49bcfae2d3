"""One poll loop for everything that process 1 waits for, also while a run is under way."""
import select
import time

READ = select.POLLIN
WRITE = select.POLLOUT
FOREVER = float("inf")


class Loop:
    """Descriptors and who is told when they are ready."""

    def __init__(self):
        self.poller = select.poll()
        self.told = {}

    def watch(self, fd, events, tell):
        self.poller.register(fd, events)
        self.told[fd] = tell

    def forget(self, fd):
        if self.told.pop(fd, None) is not None:
            self.poller.unregister(fd)

    def turn(self, until):
        """Waits until something is ready or the monotonic clock shows `until`; tells who waits for what is ready."""
        wait_ms = None if until == FOREVER else int(max(0, until - time.monotonic()) * 1000) + 1
        for fd, _events in self.poller.poll(wait_ms):
            # One that was told before may have ended this one.
            tell = self.told.get(fd)
            if tell is not None:
                tell()
