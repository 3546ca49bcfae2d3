# The image of a sandbox pod: a Python with its whole standard library, a shell, and the runner as process 1.
# Nothing of it is writable by user code, nothing in it raises privileges, and nothing is installed when it runs.
#
#   docker build -f docker/sandbox.Dockerfile -t etude-sandbox .
#
# BASE       any Debian-like image with Python 3.11 or newer, as `python3` on its PATH; pin it by digest
# PACKAGES   requirements with hashes, a path in this repository; what a cell may import beyond the standard library
# PIP_INDEX_URL, PIP_CERT   how pip reaches its index while the image is built
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS packages
ARG PACKAGES=docker/packages.txt
ARG PIP_INDEX_URL=
ARG PIP_CERT=
COPY ${PACKAGES} /packages.txt
# Wheels only: building a source package would run its author's code with the rights of the build.
RUN set -eu; mkdir -p /opt/etude/packages; \
    if grep -qE '^[[:space:]]*[^#[:space:]]' /packages.txt; then \
      python3 -m pip --version >/dev/null 2>&1 || { apt-get update && apt-get install -y --no-install-recommends python3-pip; }; \
      [ -n "${PIP_INDEX_URL}" ] || unset PIP_INDEX_URL; [ -n "${PIP_CERT}" ] || unset PIP_CERT; \
      python3 -m pip install --no-cache-dir --require-hashes --only-binary :all: --target /opt/etude/packages -r /packages.txt; \
    fi

FROM ${BASE}
COPY --from=packages /opt/etude/packages /opt/etude/packages
COPY libs/sandbox/runner/*.py /opt/etude/runner/

# The runner is started with /usr/bin/python3, whatever the base is. It needs the option -P and the modules below.
RUN set -eu; [ -x /usr/bin/python3 ] || ln -s "$(command -v python3)" /usr/bin/python3; \
    /usr/bin/python3 -c 'import sys; assert sys.version_info >= (3, 11), "BASE needs Python 3.11 or newer, not " + sys.version'; \
    /usr/bin/python3 -s -S -P -c 'import ctypes, decimal, json, math, sqlite3, ssl, unittest, zoneinfo'; \
    bash -c :; \
    grep -q '^sandbox:' /etc/passwd || { echo 'sandbox:x:65532:65532:sandbox:/tmp:/bin/bash' >>/etc/passwd; echo 'sandbox:x:65532:' >>/etc/group; }
# Compiled here, because a pod's file system is read-only. Unchecked, because the sources can't change in a pod.
RUN set -eu; /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /opt/etude; \
    chown -R 0:0 /opt/etude; chmod -R a=rX,u+w /opt/etude; \
    # The kubelet puts the termination message here; user code can't enter the folder, which belongs to root.
    mkdir -p /run/etude/hidden; chmod 0700 /run/etude/hidden; \
    mkdir -p /tmp /dev/shm; chmod 1777 /tmp; \
    find / -xdev \( -path /proc -o -path /sys \) -prune -o -perm /6000 ! -type l -exec chmod a-s {} +; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* /root/.cache

# PYTHONHASHSEED is the default seed of executions, because the warm interpreter starts with it.
ENV PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONHASHSEED=0
USER 65532:65532
WORKDIR /tmp
# -s -S -P: nothing of the working folder, the user or the site is on the path; -B: nothing is written beside the sources.
ENTRYPOINT ["/usr/bin/python3", "-s", "-S", "-B", "-P", "-X", "utf8", "-c", "import sys; sys.path.insert(0, '/opt/etude'); sys.path.append('/opt/etude/packages'); from runner.pod import main; main()"]
