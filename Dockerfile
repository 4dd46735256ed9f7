# make image: the program is built on the host, so that no network is needed here.
FROM scratch
COPY bin/zedkube /zedkube
ENTRYPOINT ["/zedkube"]
