#!/bin/sh
# A host whose services OpenRC of this machine starts (openrc_test.go): in namespaces, on a root in memory at $1, with the
# programs of $1.programs, the service $1.service and, read-only, the libraries of this machine.
set -eu
root=$1
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
cd "$root"
mkdir -p usr/lib usr/bin usr/sbin proc dev run/openrc tmp persist etc/init.d etc/conf.d etc/runlevels/default var/log
for dir in bin sbin lib; do ln -s "usr/$dir" "$dir"; done
for dir in lib lib32 lib64 libx32; do
	[ -d "/usr/$dir" ] && [ ! -L "/usr/$dir" ] || continue
	mkdir -p "usr/$dir"
	mount --bind "/usr/$dir" "usr/$dir"
	mount -o remount,bind,ro,nosuid "usr/$dir"
	[ -e "$dir" ] || ln -s "usr/$dir" "$dir"
done
mount -t proc proc proc
for name in null random urandom; do
	: >"dev/$name"
	mount --bind "/dev/$name" "dev/$name"
done
cp "$root.programs"/* usr/bin/
for name in openrc-run rc-service supervise-daemon; do mv "usr/bin/$name" usr/sbin/; done
install -m 755 "$root.service" etc/init.d/zedkube
echo 'root:x:0:0::/:/bin/sh' >etc/passwd
echo 'root:x:0:' >etc/group
: >etc/insserv.conf
# OpenRC has booted the host.
: >run/openrc/softlevel
for dir in daemons exclusive failed hotplugged inactive options scheduled started starting stopping tmp wasinactive; do
	mkdir "run/openrc/$dir"
done
exec chroot . /bin/busybox sh -c '/bin/busybox --install -s /bin; : >/run/booted; while :; do sleep 1; done'
