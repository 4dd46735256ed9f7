#!/bin/sh
# Makes this device an edge node of the cluster. Run it as root in the directory it is in.
#   --allow-kubelet  also where k3s or a kubelet runs
#   --no-checks      without asking for the ports and the time of the server
# Exit codes: 0 edgecore runs, 1 something is missing.
set -eu
cd "$(dirname "$0")"
# shellcheck source=/dev/null
. ./settings.sh

fail() { echo "join.sh: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

KUBELET=no CHECKS=yes
for argument; do
	case $argument in
	--allow-kubelet) KUBELET=yes ;;
	--no-checks) CHECKS=no ;;
	*) fail "unknown argument $argument" ;;
	esac
done

[ "$(id -u)" = 0 ] || fail "run it as root"
has ip || fail "the command ip is missing"
sha256sum -c SHA256SUMS >/dev/null || fail "files were changed after they were packed, see above"

case $(uname -m) in
x86_64) MACHINE=amd64 ;;
aarch64) MACHINE=arm64 ;;
*) MACHINE=$(uname -m) ;;
esac
[ "$MACHINE" = "$ARCH" ] || fail "this device is $MACHINE, and the bundle is for $ARCH"

if [ $KUBELET = no ]; then
	for comm in /proc/[0-9]*/comm; do
		read -r process <"$comm" 2>/dev/null || continue
		case $process in
		k3s* | kubelet) fail "$process runs here: a member of a cluster cannot be an edge node as well (--allow-kubelet)" ;;
		esac
	done
fi

[ -S "$SOCKET" ] || fail "no container runtime at $SOCKET"
if has ctr; then
	ctr -a "$SOCKET" --timeout 5s version >/dev/null 2>&1 || fail "the container runtime at $SOCKET does not answer"
fi
if [ ! -f edgecore ]; then
	has edgecore || fail "the bundle has no edgecore, and there is none in PATH"
fi

# reached HOST PORT: 2 is "cannot tell".
reached() {
	if has nc; then
		nc -z -w 5 "$1" "$2" >/dev/null 2>&1
	elif has bash && has timeout; then
		timeout 5 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null
	elif has curl; then
		case $1 in *:*) host="[$1]" ;; *) host=$1 ;; esac
		code=0
		curl -sk -o /dev/null --connect-timeout 5 --max-time 6 "https://$host:$2/" || code=$?
		case $code in 7 | 28) return 1 ;; esac
	else
		return 2
	fi
}

# answers HOST: all ports of cloudcore do.
answers() {
	for port in $HTTPS $HUB $TUNNEL; do
		[ "$port" = 0 ] && continue
		code=0
		reached "$1" "$port" || code=$?
		case $code in
		1) echo "join.sh: $1 does not answer at port $port" >&2; return 1 ;;
		2) echo "join.sh: neither nc, bash nor curl is there: the ports of $1 are not checked" >&2; return 0 ;;
		esac
	done
}

SERVER=
# shellcheck disable=SC2153
FIRST=${SERVERS%% *}
if [ $CHECKS = no ]; then
	SERVER=$FIRST
else
	for server in $SERVERS; do
		if answers "$server"; then
			SERVER=$server
			break
		fi
	done
	[ -n "$SERVER" ] || fail "no server is reached: is a firewall between, or KubeEdge off?"
fi
case $SERVER in *:*) URL="[$SERVER]" ;; *) URL=$SERVER ;; esac
case $FIRST in *:*) FIRST="[$FIRST]" ;; esac
# served FILE: FILE with the server that was reached for the first one. Dots and brackets stand for themselves.
served() { sed "s,$(printf %s "$FIRST" | sed 's/[].[]/\\&/g'):,$URL:,g" "$1"; }

# seconds: the time of an HTTP Date header, since 1970.
seconds() {
	awk 'BEGIN { IGNORECASE = 1 } tolower($0) ~ /^ *date:/ {
		sub(/^ *[Dd][Aa][Tt][Ee]: */, ""); split($0, f, /[ :]+/)
		m = (index("JanFebMarAprMayJunJulAugSepOctNovDec", f[3]) + 2) / 3; y = f[4]
		if (m < 3) { y--; m += 12 }
		days = 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + f[2] - 719469
		printf "%d\n", days * 86400 + f[5] * 3600 + f[6] * 60 + f[7]; exit
	}'
}
if [ $CHECKS = yes ]; then
	THERE=
	if has curl; then
		THERE=$(curl -skI --max-time 5 "https://$URL:$HTTPS/" | seconds || true)
	elif has wget; then
		THERE=$(wget -S -T 5 --no-check-certificate -O /dev/null "https://$URL:$HTTPS/" 2>&1 | seconds || true)
	fi
	if [ -n "$THERE" ]; then
		APART=$((THERE - $(date -u +%s)))
		[ "${APART#-}" -le 300 ] || fail "the clock is ${APART#-} s apart from that of the server: certificates would not be valid"
	else
		echo "join.sh: the time of the server is not known, so the clock is not checked" >&2
	fi
fi

# From here on something is changed.
mkdir -p /usr/local/lib/zedkube-edge
cp leave.sh run.sh settings.sh /usr/local/lib/zedkube-edge/
if [ -f edgecore ]; then
	mkdir -p /usr/local/bin
	cp edgecore /usr/local/bin/edgecore.new
	chmod 755 /usr/local/bin/edgecore.new
	mv /usr/local/bin/edgecore.new /usr/local/bin/edgecore
	EDGECORE=/usr/local/bin/edgecore
else
	EDGECORE=$(command -v edgecore)
fi
if [ -f pause.tar ] && has ctr; then
	ctr -a "$SOCKET" -n k8s.io images import pause.tar >/dev/null || fail "import pause.tar"
fi

ip addr replace "$ADDRESS/32" dev lo
# Without DNS edgecore looks for its names for 30 s.
for host in "$NAME" "$(uname -n)"; do
	grep -q "[[:space:]]$host\([[:space:]]\|\$\)" /etc/hosts 2>/dev/null || echo "$ADDRESS $host # zedkube-edge" >>/etc/hosts
done

umask 077
mkdir -p /etc/kubeedge/config /var/lib/kubeedge
served edgecore.yaml >/etc/kubeedge/config/edgecore.yaml
# Certificates of an earlier join are another cluster's, or lost ones.
rm -rf /etc/kubeedge/ca /etc/kubeedge/certs
cp token /etc/kubeedge/bootstrap-edgecore.conf

if [ -d /run/systemd/system ] && has systemctl; then
	umask 022
	sed "s,/usr/local/bin/edgecore,$EDGECORE," edgecore.service >/etc/systemd/system/edgecore.service
	cp address.service /etc/systemd/system/zedkube-edge-address.service
	if [ $KUBELET = yes ]; then
		sed -i 's,^ExecStart=,Environment=CHECK_EDGECORE_ENVIRONMENT=false\n&,' /etc/systemd/system/edgecore.service
	fi
	systemctl daemon-reload
	systemctl enable zedkube-edge-address.service edgecore.service
	systemctl restart zedkube-edge-address.service edgecore.service
else
	echo "join.sh: systemd does not run here: edgecore is started now, and not after a restart of the device" >&2
	[ $KUBELET = no ] || export CHECK_EDGECORE_ENVIRONMENT=false
	for file in /run/zedkube-edge.pid /run/zedkube-edge-core.pid; do
		[ ! -s $file ] || kill "$(cat $file)" 2>/dev/null || true
	done
	# shellcheck disable=SC2016
	nohup sh -c 'echo $$ >/run/zedkube-edge.pid; while :; do sh /usr/local/lib/zedkube-edge/run.sh "$0" --config /etc/kubeedge/config/edgecore.yaml & echo $! >/run/zedkube-edge-core.pid; wait $!; sleep 2; done' \
		"$EDGECORE" >/var/log/edgecore.log 2>&1 </dev/null &
fi

# edgecore would read the token at each start.
tries=0
while [ $tries -lt 30 ] && [ ! -s /etc/kubeedge/certs/server.crt ]; do
	sleep 1
	tries=$((tries + 1))
done
if [ -s /etc/kubeedge/certs/server.crt ]; then
	rm -f /etc/kubeedge/bootstrap-edgecore.conf
	echo "edgecore runs, and has its certificate. In the cluster: zedkube-edge wait $NAME"
else
	echo "join.sh: edgecore runs, and has no certificate after 30 s: it goes on trying. Its log says why" >&2
fi
