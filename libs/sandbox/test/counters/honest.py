"""Uses a little of everything that the kernel counts, and prints what it got."""
import ctypes
import os
import select
import signal
import socket
import subprocess
import threading

libc = ctypes.CDLL(None)

reading, writing = os.pipe()
os.set_blocking(writing, False)
print("bytes in a pipe:", os.write(writing, bytes(65536)))

ours, theirs = socket.socketpair()
socket.send_fds(ours, [b"x"], [reading])
print("descriptors received:", len(socket.recv_fds(theirs, 1, 1)[1]))

poll = select.epoll()
poll.register(reading)
print("events:", len(poll.poll(0)))

print("files:", len([open("/dev/null") for _ in range(100)]))

thread = threading.Thread(target=lambda: print("thread"))
thread.start()
thread.join()
print("exit of a process:", subprocess.run(["/bin/true"]).returncode)

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN, signal.SIGALRM])
print("queued:", libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p()), signal.sigwait([signal.SIGRTMIN]) == signal.SIGRTMIN)
print("timer:", libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p())))
signal.setitimer(signal.ITIMER_REAL, 0.01)
print("alarm:", signal.sigwait([signal.SIGALRM]) == signal.SIGALRM)

page = ctypes.create_string_buffer(4096)
print("locked:", libc.mlock(page, 4096))
