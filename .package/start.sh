#!/bin/sh
# Starts zedkube on an EVE device as pillar starts its agents, and starts it again when it ends. It is
# /opt/zededa/bin/zedkube-start.sh there; what it is given it passes on to "zedkube run".
#
#   TERM, INT   end zedkube, then this; the exit code is zedkube's
#   HUP, QUIT   are passed on: QUIT makes zedkube write where each goroutine stands. It ends, and is started again
#
# A script that starts this with & makes it deaf to INT and QUIT, as device-steps.sh does: send QUIT to zedkube itself.
#
# ZEDKUBE names the program, ZEDKUBE_ROOT prefixes every path: both are for trials beside a running device.
set -u

program=${ZEDKUBE:-$(dirname "$0")/zedkube}
root=${ZEDKUBE_ROOT:-}
touch_file=$root/run/zedkube.touch
watched=$root/run/watchdog/file/zedkube.touch

# The touch file may not be older than 300 s, or the device reboots: 60 s leave an agent that crashes again and again
# its chance to touch it, and the device to those who look after it.
longest=60
# Who has run that long does not crash again and again.
settled=300

child=
ending=

# say LEVEL TEXT writes a line as the agents' logs are: newlogd reads JSON.
say() {
	printf '{"level":"%s","msg":"%s","pid":%d,"source":"zedkube-start","time":"%s"}\n' \
		"$1" "$2" "$$" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >&2
}

# pass SIGNAL hands it on to zedkube.
pass() {
	[ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
}

# end tells zedkube to end, and once more a second later: what it is told between fork and exec it does not hear.
end() {
	ending=yes
	pass TERM
	{ sleep 1; pass TERM; } &
}

# run PROGRAM [WORD...] sets code to its exit code. A signal ends "wait", not the program, whose exit code has to be asked
# for once more where it ends just then; 127 says that it was told already.
run() {
	"$@" &
	child=$!
	[ -z "$ending" ] || end # told before child was known
	while :; do
		wait "$child"
		code=$?
		kill -0 "$child" 2>/dev/null || break
	done
	if [ "$code" -gt 128 ]; then
		wait "$child" 2>/dev/null
		again=$?
		[ "$again" -eq 127 ] || code=$again
	fi
	child=
}

# register tells EVE's watchdog which file to look at, as soon as it is there, or after 60 s anyway: an agent that
# never comes up ends in a reboot, and a new EVE image in its predecessor.
register() {
	waited=0
	while [ ! -f "$touch_file" ] && [ "$waited" -lt 60 ]; do
		sleep 1
		waited=$((waited + 1))
	done
	[ -f "$touch_file" ] || say error "no $touch_file after 60 s: it is registered with the watchdog all the same"
	if ! { mkdir -p "$(dirname "$watched")" && touch "$watched"; }; then
		say error "cannot register with the watchdog: $watched"
	fi
}

trap end TERM INT
trap 'pass HUP' HUP
trap 'pass QUIT' QUIT

if [ ! -x "$program" ]; then
	say error "no such program: $program"
	exit 127
fi

register &
registration=$!

pause=1
while :; do
	began=$(date +%s)
	run "$program" ${root:+--root "$root"} run "$@"
	if [ -n "$ending" ]; then
		kill "$registration" 2>/dev/null
		say info "zedkube was told to end, and ended with exit code $code"
		exit "$code"
	fi
	lasted=$(($(date +%s) - began))
	[ "$lasted" -lt "$settled" ] || pause=1
	say error "zedkube ended with exit code $code after $lasted s; it is started again in $pause s"
	waited=0
	while [ "$waited" -lt "$pause" ] && [ -z "$ending" ]; do
		sleep 1
		waited=$((waited + 1))
	done
	[ -z "$ending" ] || exit 0
	pause=$((pause * 2))
	[ "$pause" -le "$longest" ] || pause=$longest
done
