#!/bin/sh
# Becomes edgecore, whose command line follows, and ends it where nobody acknowledges for 20 s what it sends, as when cloudcore's
# server is lost: edgecore waits for the kernel, which gives up after a quarter of an hour. It is started again; its pods go on.
set -eu

# repeats is how often the kernel has sent the same in vain, on the worst of the process's connections; an answer makes it 0.
repeats() {
	echo $((0x$({ ls -l /proc/$$/fd; cat /proc/$$/net/tcp /proc/$$/net/tcp6; } 2>/dev/null | awk 'BEGIN { most = "0" }
		$NF ~ /^socket:/ { own[$NF] }
		$4 == "01" && ("socket:[" $10 "]") in own && $7 "" > most { most = $7 "" } END { print most }')))
}

watch() {
	looks=0 before=1
	while sleep 5 && kill -0 $$ 2>/dev/null; do
		now=$(repeats)
		if [ "$now" -lt "$before" ]; then
			looks=0 before=1
			continue
		fi
		looks=$((looks + 1)) before=$now
		if [ $looks -ge 4 ]; then
			echo "run.sh: nobody acknowledges what edgecore sends: it is started again" >&2
			kill -KILL $$
		fi
	done
}

watch &
exec "$@"
