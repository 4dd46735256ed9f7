#!/bin/sh
# Starts systemd of this machine as the first process of a host of its own (systemd_test.go): in namespaces, on a root in
# memory at $1, with the units of $1.units, the programs of $1.programs and, read-only, the libraries of this machine.
# Nothing of this machine can be written from there: systemd tidies up what it takes for its own, /tmp as a whole.
set -eu
root=$1
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
cd "$root"
mkdir -p usr/lib usr/bin usr/sbin proc sys dev run tmp etc/systemd/system var/lib old
for dir in bin sbin lib; do ln -s "usr/$dir" "$dir"; done
for dir in lib lib32 lib64 libx32; do
	[ -d "/usr/$dir" ] && [ ! -L "/usr/$dir" ] || continue
	mkdir -p "usr/$dir"
	mount --bind "/usr/$dir" "usr/$dir"
	mount -o remount,bind,ro,nosuid "usr/$dir"
	[ -e "$dir" ] || ln -s "usr/$dir" "$dir"
done
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys
for name in null zero full random urandom; do
	: >"dev/$name"
	mount --bind "/dev/$name" "dev/$name"
done
mount -t tmpfs tmpfs run
# Of systemd's own units only what the order of others mentions, and none of its generators.
units=usr/lib/systemd/system
mkdir old/units
for name in basic shutdown sysinit umount multi-user network sockets timers paths slices local-fs remote-fs; do
	cp "$units/$name.target" old/units/
done
mount -t tmpfs tmpfs "$units"
mv old/units/* "$units/"
mount -t tmpfs -o ro tmpfs usr/lib/systemd/system-generators
cp -R "$root.units/." etc/systemd/system/
cp "$root.programs"/* usr/bin/
echo 'root:x:0:0::/:/bin/sh' >etc/passwd
echo 'root:x:0:' >etc/group
mkdir -p etc/systemd/system/multi-user.target.wants
ln -s /etc/systemd/system/zedkube.service etc/systemd/system/multi-user.target.wants/
exec unshare --cgroup sh -eu -c '
	mount -t cgroup2 cgroup2 sys/fs/cgroup
	pivot_root . old
	cd /
	busybox umount -l old
	exec busybox env -i container=other PATH=/bin:/sbin /lib/systemd/systemd --system --unit=multi-user.target --log-target=console --show-status=no'
