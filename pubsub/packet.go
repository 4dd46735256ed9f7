package pubsub

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/peer"
)

// The words of the socket protocol (docs/wire.md, "Socket protocol").
const (
	verbRequest   = "request"
	verbHello     = "hello"
	verbUpdate    = "update"
	verbDelete    = "delete"
	verbComplete  = "complete"
	verbRestarted = "restarted"
)

const (
	// packetBuffer is what readers offer; a packet that fills it may have been cut.
	packetBuffer = 65536
	// maxPacket is the longest packet that EVE's readers and writers accept.
	maxPacket = 65534
	// requestBuffer is what a publisher offers for the request.
	requestBuffer = 256
)

// packet is a decoded message of a publisher.
type packet struct {
	verb  string
	key   string // of update and delete
	value []byte // of update: JSON
}

func requestPacket(topic string) []byte { return []byte(verbRequest + " " + topic) }

func helloPacket(topic string, persistent bool) []byte {
	return fmt.Appendf(nil, "%s %s %t", verbHello, topic, persistent)
}

func updatePacket(topic, key string, value []byte) []byte {
	b := make([]byte, 0, updateSize(topic, key, value))
	b = append(b, verbUpdate+" "+topic+" "...)
	b = base64.StdEncoding.AppendEncode(b, []byte(key))
	return base64.StdEncoding.AppendEncode(append(b, ' '), value)
}

// updateSize is the length of an updatePacket.
func updateSize(topic, key string, value []byte) int {
	enc := base64.StdEncoding
	return len(verbUpdate) + 1 + len(topic) + 1 + enc.EncodedLen(len(key)) + 1 + enc.EncodedLen(len(value))
}

func deletePacket(topic, key string) []byte {
	return base64.StdEncoding.AppendEncode([]byte(verbDelete+" "+topic+" "), []byte(key))
}

func completePacket(topic string) []byte { return []byte(verbComplete + " " + topic) }

func restartedPacket(topic string, n int) []byte {
	return fmt.Appendf(nil, "%s %s %d", verbRestarted, topic, n)
}

// decodePacket reads a message about topic. Where only the value is unusable
// the key is returned beside the error.
func decodePacket(topic string, b []byte) (packet, error) {
	fields := bytes.Split(b, []byte(" "))
	p := packet{verb: string(fields[0])}
	least, most := fieldCount(p.verb)
	if most == 0 {
		return packet{}, errors.New("decode packet: unknown verb")
	}
	if len(fields) >= 2 && string(fields[1]) != topic {
		return packet{}, errors.New("decode packet: it is for another topic")
	}
	if p.verb == verbUpdate || p.verb == verbDelete {
		if len(fields) < 3 {
			return packet{}, errors.New("decode packet: the key is missing")
		}
		key, err := base64.StdEncoding.AppendDecode(nil, fields[2])
		if err != nil {
			return packet{}, fmt.Errorf("decode key: %w", err)
		}
		if len(key) == 0 {
			return packet{}, errors.New("decode packet: the key is empty")
		}
		p.key = string(key)
	}
	switch {
	case len(fields) < least || len(fields) > most:
		return p, fmt.Errorf("decode %s packet: it has %d fields", p.verb, len(fields))
	case len(b) >= packetBuffer:
		return p, fmt.Errorf("decode %s packet: it is %d bytes or longer", p.verb, packetBuffer)
	case p.verb == verbUpdate:
		value, err := base64.StdEncoding.AppendDecode(nil, fields[3])
		if err != nil {
			return p, fmt.Errorf("decode value: %w", err)
		}
		p.value = value
	}
	return p, nil
}

// fieldCount is how many fields a message may have. Older publishers leave the
// third field of hello out; surplus fields are ignored, as EVE's subscribers do,
// except in an update.
func fieldCount(verb string) (least, most int) {
	switch verb {
	case verbHello, verbComplete:
		return 2, math.MaxInt
	case verbUpdate:
		return 4, 4
	case verbDelete:
		return 3, math.MaxInt
	case verbRestarted: // EVE needs no counter in it, and neither do we
		return 2, math.MaxInt
	}
	return 0, 0
}

// network is SOCK_SEQPACKET: one message per packet.
const network = "unixpacket"

func dial(path string) (conn *net.UnixConn, err error) {
	err = peer.Reach(path, func(short string) error {
		conn, err = net.DialUnix(network, nil, &net.UnixAddr{Name: short, Net: network})
		return err
	})
	return conn, err
}

// listen binds path. A socket on which someone listens is an error; one that
// a dead process left behind is replaced.
func listen(path string) (l *net.UnixListener, err error) {
	conn, err := dial(path)
	switch {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("bind %s: %w", path, ErrInUse)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove stale socket: %w", err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("bind %s: cannot determine whether it is in use: %w", path, err)
	}
	err = peer.Reach(path, func(short string) error {
		l, err = net.ListenUnix(network, &net.UnixAddr{Name: short, Net: network})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", path, err)
	}
	// The address may be the way round through /proc, so we unlink ourselves.
	l.SetUnlinkOnClose(false)
	// Values may be secret: who may connect must not depend on the umask.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect socket: %w", err)
	}
	return l, nil
}
