# The image of the four services: Node.js, the compiled services, their packages, and the C libraries that they need. It has no shell.
#
#   docker build -f docker/services.Dockerfile -t etude .
#
# BUILD      an image with npm, for building; BASE: Debian-like, with glibc; pin both by digest
# NPM        the npm command in the BUILD image
# NPM_CONFIG_REGISTRY, NODE_EXTRA_CA_CERTS   how npm reaches its registry while the image is built
ARG BUILD=node:26-bookworm-slim
ARG BASE=debian:bookworm-slim

FROM ${BUILD} AS build
ARG NPM=npm
ARG NPM_CONFIG_REGISTRY=
ARG NODE_EXTRA_CA_CERTS=
WORKDIR /etude
COPY . .
RUN set -eu; [ -n "${NPM_CONFIG_REGISTRY}" ] || unset NPM_CONFIG_REGISTRY; export npm_config_cache=/tmp/npm; \
    command -v strip >/dev/null || { apt-get update && apt-get install -y --no-install-recommends binutils; }; \
    ${NPM} ci --ignore-scripts --no-audit --no-fund; \
    node_modules/.bin/node node_modules/ts7/bin/tsc -b; \
    node_modules/.bin/node apps/console/build.mjs; \
    node_modules/.bin/node docker/production-files.mjs "${NPM}" /out/etude

FROM ${BASE} AS base
RUN set -eu; missing=; for file in /usr/lib/*/libatomic.so.1 /etc/ssl/certs/ca-certificates.crt; do [ -e "$file" ] || missing=1; done; \
    [ -z "$missing" ] || { apt-get update && apt-get install -y --no-install-recommends libatomic1 libstdc++6 ca-certificates; }
COPY --from=build /out /out
# Copies the libraries of the programs, and the files that the C library reads.
RUN set -eu; cd /out; mkdir -p etc/ssl/certs tmp usr/share; chmod 1777 tmp; \
    find etude -name node -path '*/bin/*' -o -name '*.node' -o -name '*.so*' | while read -r program; do ldd "$program" 2>/dev/null || true; done \
      | sed -nE 's/.*(=> |^[[:space:]]*)(\/[^ ]+) \(.*/\2/p' | grep -v '^/out' | sort -u > /tmp/libraries; \
    ls /lib/*/libresolv.so.2 /lib/*/libnss_dns.so.2 /lib/*/libnss_files.so.2 >> /tmp/libraries 2>/dev/null || true; \
    while read -r library; do mkdir -p "./$(dirname "$library")"; cp -L "$library" "./$library"; done < /tmp/libraries; \
    cp -L /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/; \
    echo 'etude:x:65532:65532:etude:/tmp:/nonexistent' > etc/passwd; echo 'etude:x:65532:' > etc/group; \
    echo 'hosts: files dns' > etc/nsswitch.conf; \
    chown -R 0:0 .; chmod -R a=rX,u+w etude

FROM scratch
LABEL org.opencontainers.image.title="etude" org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.description="Solves tasks by writing code, and learns from what happened"
COPY --from=base /out/ /
ENV NODE_ENV=production SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532:65532
WORKDIR /etude
ENTRYPOINT ["/etude/bin/node", "--max-semi-space-size=4"]
CMD ["apps/gateway/dist/main.js"]
