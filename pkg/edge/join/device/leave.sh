#!/bin/sh
# Ends that this device is an edge node: edgecore, its containers, its files and its address go. Run it as root.
# On a device that has joined it is /usr/local/lib/zedkube-edge/leave.sh.
set -eu
cd "$(dirname "$0")"
# shellcheck source=/dev/null
. ./settings.sh

has() { command -v "$1" >/dev/null 2>&1; }
[ "$(id -u)" = 0 ] || { echo "leave.sh: run it as root" >&2; exit 1; }

if [ -d /run/systemd/system ] && has systemctl; then
	systemctl disable --now edgecore.service zedkube-edge-address.service 2>/dev/null || true
	rm -f /etc/systemd/system/edgecore.service /etc/systemd/system/zedkube-edge-address.service
	systemctl daemon-reload
fi
# The loop first: it would start edgecore again.
for file in /run/zedkube-edge.pid /run/zedkube-edge-core.pid; do
	if [ -s $file ]; then
		kill "$(cat $file)" 2>/dev/null || true
		rm -f $file
	fi
done

# A kubelet has its containers and directories where edgecore has them: which are whose cannot be told.
KUBELET=
for comm in /proc/[0-9]*/comm; do
	read -r process <"$comm" 2>/dev/null || continue
	case $process in
	k3s* | kubelet) KUBELET=$process ;;
	esac
done

# Only what is of pods: another user of the runtime has another namespace.
if [ -n "$KUBELET" ]; then
	echo "leave.sh: $KUBELET runs here: containers of pods and /var/lib/kubelet stay" >&2
elif has crictl; then
	for pod in $(crictl --runtime-endpoint "unix://$SOCKET" pods -q); do
		crictl --runtime-endpoint "unix://$SOCKET" rmp -f "$pod" >/dev/null || true
	done
elif has ctr; then
	for container in $(ctr -a "$SOCKET" -n k8s.io containers list -q); do
		ctr -a "$SOCKET" -n k8s.io tasks kill -s KILL "$container" >/dev/null 2>&1 || true
		ctr -a "$SOCKET" -n k8s.io tasks delete -f "$container" >/dev/null 2>&1 || true
		ctr -a "$SOCKET" -n k8s.io containers delete "$container" >/dev/null || true
	done
else
	echo "leave.sh: neither crictl nor ctr is there: containers of pods stay" >&2
fi

awk -v kept="$KUBELET" '$2 ~ "^/var/lib/kubeedge/" || kept == "" && $2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/self/mounts | sort -r | while read -r mount; do
	umount "$mount" 2>/dev/null || true
done
rm -rf /etc/kubeedge /var/lib/kubeedge || true # one may be a mount, whose content is gone then
# What is still mounted there may be a directory of the device.
if [ -z "$KUBELET" ] && ! grep -q ' /var/lib/kubelet/' /proc/self/mounts; then
	rm -rf /var/lib/kubelet/pods
fi
ip addr del "$ADDRESS/32" dev lo 2>/dev/null || true
if grep -q '# zedkube-edge$' /etc/hosts; then
	# Not sed -i: in a container /etc/hosts is a mount.
	LEFT=$(grep -v '# zedkube-edge$' /etc/hosts)
	printf '%s\n' "$LEFT" >/etc/hosts
fi
rm -rf /usr/local/lib/zedkube-edge
echo "This device is no edge node any more. In the cluster: zedkube-edge leave $NAME"
