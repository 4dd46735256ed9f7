package path

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// dial connects to a cloudcore. The kernel ends the connection where that is silent and its server does not answer for
// lostAfter.
func dial(ctx context.Context, target string) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialWithin, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: lostAfter - 3*time.Second, Interval: time.Second, Count: 3,
	}}
	conn, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// lost reports that what was sent is not acknowledged: for that the kernel waits a quarter of an hour. TCP_USER_TIMEOUT
// would also end a connection to an edge node that takes long to read what it gets.
func lost(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true // closed
	}
	var info *unix.TCPInfo
	var failed error
	err = raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil || failed != nil {
		return true
	}
	return info.Unacked > 0 && time.Duration(info.Last_ack_recv)*time.Millisecond > lostAfter
}
