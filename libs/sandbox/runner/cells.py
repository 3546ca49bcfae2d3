"""Cells for runs. Some are forked ahead, others on demand; a zygote that was killed is replaced."""
from runner import processes
from runner.zygote import SpareCell, ZygoteLost

# Spare cells of a pod: as many as a checked run takes.
SPARES = 2
# Processes of the user that are not the code's: the supervisor, the zygote, its middle fork, and the spare cells.
PROCESSES_APART = 4 + SPARES


class CellPool:
    def __init__(self, zygote):
        self.zygote = zygote
        # PYTHONHASHSEED of the sandbox's first interpreter.
        self.hash_seed = 0
        self.spares = []
        # The interpreter of a session, which keeps the names of its cells. Most sandboxes never start it.
        self.session = None
        # Whether a cell has run in it. When such an interpreter is lost, the next cell reports `stateLost`.
        self.session_began = False
        # Number of the last cell. Each report has the number of its cell, so that a late report isn't taken for the next cell's.
        self.session_cells = 0
        # The state of the session's scratchpad after its last cell, with which another interpreter begins; None if there is none.
        self.scratchpad = None

    def fill(self, count):
        """Forks spare cells until there are `count`."""
        try:
            while len(self.spares) < count:
                self.spares.append(self._fork())
        except (ZygoteLost, OSError):
            # The next run tries again and reports the failure.
            return

    def take(self):
        return self.spares.pop(0) if self.spares else self._fork()

    def _fork(self):
        """Call it only while no code runs. Code could take over a new interpreter that has not hidden itself yet."""
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
        """Drops processes that have ended, since their pids may be reused, and processes that the code has signalled, since they may
        end late. Call it when no code is alive."""
        for cell in [cell for cell in self.spares if cell.pid in reaped or processes.is_doomed(cell.pid)]:
            self.spares.remove(cell)
            cell.close()
        if self.zygote.connection is not None and (self.zygote.pid in reaped or processes.is_doomed(self.zygote.pid)):
            self.zygote.stop()
        if self.session and self.session.pid in reaped:
            self.lose_session()

    def lose_all(self):
        """Kills and drops the session's interpreter, the spare cells and the zygote."""
        self.lose_session()
        for cell in self.spares:
            processes.kill(cell.pid)
            cell.close()
        self.spares.clear()
        if self.zygote.connection is not None:
            processes.kill(self.zygote.pid)
            self.zygote.stop()

    def lose_session(self):
        if self.session is not None:
            processes.kill(self.session.pid)
            self.session.close()
            self.session = None

    def session_cpu_ms(self):
        """CPU time of the session's interpreter and of the processes that it waited for, since it was started."""
        try:
            return processes.cpu_ms_of(processes.stat_fields(self.session.pid)) if self.session else 0.0
        except (FileNotFoundError, ProcessLookupError):
            return 0.0

    def apart(self):
        """Processes that belong to no run."""
        zygote = {self.zygote.pid} if self.zygote.connection is not None else set()
        return {1} | zygote | {cell.pid for cell in self.spares}

    def kept(self):
        """Processes that outlive a run."""
        return self.apart() | ({self.session.pid} if self.session else set())
