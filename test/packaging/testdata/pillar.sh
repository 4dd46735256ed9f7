#!/bin/sh
# The device of pillar_test.go, in namespaces of its own: its root is the directory $1. $2 is "beside" where another agent
# runs there first.
set -eu
mount --make-rprivate /
cd "$1"
mkdir -p run proc dev persist tmp bin
mount -t tmpfs tmpfs run # empty after each boot
mount -t proc proc proc
: >dev/null
mount --bind /dev/null dev/null
exec chroot . /bin/busybox sh -s "$2" <<'EOF'
/bin/busybox --install -s /bin
export PATH=/bin
BINDIR=/opt/zededa/bin
if [ "$1" = beside ]; then
	$BINDIR/zedkube run &
	while [ ! -f /run/zedkube.touch ]; do sleep 1; done
fi

# From here on as device-steps.sh starts an agent: beside itself, deaf to INT and QUIT, and it looks for the touch file too.
$BINDIR/zedkube-start.sh &
echo $! >/run/script.pid
waited=0
while [ ! -f /run/zedkube.touch ] && [ "$waited" -lt 60 ]; do sleep 1; waited=$((waited + 1)); done
mkdir -p /run/watchdog/file
touch /run/watchdog/file/zedkube.touch

# The watchdog: what is registered and older than 300 s reboots the device.
while :; do
	for file in /run/watchdog/file/*; do
		age=$(($(date +%s) - $(stat -c %Y "/run/${file##*/}")))
		[ "$age" -le 300 ] || { echo "watchdog: /run/${file##*/} is $age s old" >&2; exit 1; }
	done
	sleep 1
done
EOF
