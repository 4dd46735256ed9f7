# make image: the programs are built on the host, so that no network is needed here.
FROM scratch
# The builder says which of the two.
ARG TARGETARCH
ARG VERSION=devel
ARG REVISION=unknown
LABEL org.opencontainers.image.title="zedkube" \
      org.opencontainers.image.description="The agent between an EVE device and its Kubernetes cluster" \
      org.opencontainers.image.source="https://github.com/zedkube/zedkube" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --chmod=644 LICENSE /LICENSE
COPY --chmod=755 .package/start.sh /zedkube-start.sh
COPY --chmod=755 bin/linux-${TARGETARCH}/zedkube /zedkube
# As root: EVE's sockets and directories in /run and /persist are root's, and so are the TPM, the files of /sys by which
# devices get their drivers, and /proc of other processes.
ENTRYPOINT ["/zedkube"]
