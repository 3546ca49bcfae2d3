"""Cells for runs. One cell is forked ahead, other cells when they are needed. A zygote that was killed is replaced."""
from contextlib import suppress

from runner import processes
from runner.zygote import Cell, ZygoteLost


class CellPool:
    def __init__(self, zygote):
        self.zygote = zygote
        # PYTHONHASHSEED of the zygote. The first zygote has 0.
        self.hash_seed = 0
        # The cell that was forked ahead. A run takes it before its code starts, so that no code can signal it.
        self.spare = None
        # The interpreter of a session, which keeps the names of its cells. Most sandboxes never start it.
        self.session = None
        # Whether a cell has run in the session's interpreter. If that interpreter is lost, the next cell reports `stateLost`.
        self.session_began = False
        # Number of the last cell. Each report has the number of its cell, so that a late report isn't taken for the next cell's.
        self.session_cells = 0
        # The state of the session's scratchpad after the last cell. A new interpreter begins with it. None until a cell has reported a state.
        self.scratchpad = None

    def fill(self):
        """Forks a cell ahead. Does nothing in a session, since its interpreter runs all cells."""
        # A failure is ignored: the next run tries again and reports it.
        with suppress(ZygoteLost, OSError):
            if self.spare is None and self.session is None:
                self.spare = self._fork()

    def take(self):
        cell, self.spare = self.spare, None
        return cell or self._fork()

    def _fork(self):
        """Forks a cell. Call it only while no code runs, since code could attack an interpreter that has not hidden itself yet."""
        try:
            return Cell(self.zygote)
        except ZygoteLost:
            self.zygote.start_fresh(self.hash_seed)
            return Cell(self.zygote)

    def reseed(self, hash_seed):
        if hash_seed != self.hash_seed:
            self.lose_all()
            self.hash_seed = hash_seed
            self.zygote.start_fresh(hash_seed)

    def forget(self, reaped):
        """Drops the pool's processes that have ended, since their pids may be reused. Call it when no code is alive."""
        if self.zygote.pid in reaped:
            self.zygote.stop()
        if self.session and self.session.pid in reaped:
            self.lose_session()

    def lose_all(self):
        self.lose_session()
        if self.spare is not None:
            processes.kill(self.spare.pid)
            self.spare.close()
            self.spare = None
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
        return {1} | ({self.zygote.pid} if self.zygote.connection is not None else set())

    def kept(self):
        """Processes that outlive a run."""
        return self.apart() | ({self.session.pid} if self.session else set())
