"""Sockets that carry descriptors. From the C part alone: `socket` builds enumerations, which every start would pay for."""
import array

import _socket

STREAM = _socket.SOCK_STREAM
PACKETS = _socket.SOCK_SEQPACKET


def socket_pair(kind=STREAM):
    return _socket.socketpair(_socket.AF_UNIX, kind)


def socket_of(fd):
    return _socket.socket(fileno=fd)


def send_fds(sock, message, fds):
    sock.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))])


def receive_fds(sock, fds_max):
    """Message and descriptors; an empty message when the other side is gone."""
    fds = array.array("i")
    message, ancillary, _flags, _address = sock.recvmsg(1, _socket.CMSG_LEN(fds_max * fds.itemsize))
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)
