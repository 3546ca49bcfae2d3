"""Cells for runs: some forked ahead, more from the zygote, and a new zygote where the last one was killed."""
from runner import processes
from runner.session_kernel import SessionKernel
from runner.zygote import SpareCell, ZygoteLost

# As many as a checked run takes.
SPARES = 2
# The supervisor, the zygote, its middle fork, and cells in waiting are not the code's processes.
PROCESSES_APART = 4 + SPARES


class CellPool:
    def __init__(self, zygote):
        self.zygote = zygote
        # PYTHONHASHSEED of the sandbox's first interpreter.
        self.hash_seed = 0
        self.spares = []
        # Of a session, the interpreter that keeps its names; most sandboxes never start it.
        self.session = SessionKernel(PROCESSES_APART)
        # Whether the next cell counts on names of those before.
        self.session_began = False

    def fill(self, count):
        """So that the next execution finds so many cells in waiting."""
        try:
            while len(self.spares) < count:
                self.spares.append(self._fork())
        except (ZygoteLost, OSError):
            # The next run tries again, and fails with what is wrong.
            return

    def take(self):
        return self.spares.pop(0) if self.spares else self._fork()

    def _fork(self):
        """Only while no code runs: until a new interpreter has hidden itself, code could take it over."""
        try:
            return SpareCell(self.zygote)
        except ZygoteLost:
            self.zygote.start_fresh(self.hash_seed)
            return SpareCell(self.zygote)

    def reseed(self, hash_seed):
        if hash_seed != self.hash_seed:
            self.lose_all()
            self.hash_seed = hash_seed
            self.zygote.start_fresh(hash_seed)

    def forget(self, reaped):
        """Drops what has ended, whose number may be another process's by now, and what the code of a run has signalled: the kernel
        may not have ended it yet. To be called when no code is alive."""
        for cell in [cell for cell in self.spares if cell.pid in reaped or processes.is_doomed(cell.pid)]:
            self.spares.remove(cell)
            cell.close()
        if self.zygote.connection is not None and (self.zygote.pid in reaped or processes.is_doomed(self.zygote.pid)):
            self.zygote.stop()
        if self.session.cell and self.session.cell.pid in reaped:
            self.session.lost()

    def lose_all(self):
        """After everything was killed, or before it is."""
        self.session.lost()
        for cell in self.spares:
            processes.kill(cell.pid)
            cell.close()
        self.spares.clear()
        if self.zygote.connection is not None:
            processes.kill(self.zygote.pid)
            self.zygote.stop()

    def apart(self):
        """Processes that belong to no run."""
        zygote = {self.zygote.pid} if self.zygote.connection is not None else set()
        return {1} | zygote | {cell.pid for cell in self.spares}

    def kept(self):
        """Processes that outlive a run."""
        return self.apart() | ({self.session.cell.pid} if self.session.cell else set())
