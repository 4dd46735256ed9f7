package device

import (
	"fmt"
	"net"
	"strconv"

	"github.com/zedkube/zedkube/pkg/operate/localserver"
)

// pageFlag says what is served on loopback, and at which port.
type pageFlag struct {
	said    bool // else it is the numbers, and nothing below a root, where several agents share the machine
	numbers bool // the numbers alone, without the page
	port    int  // 0 for nothing
}

// String implements pflag.Value.
func (f *pageFlag) String() string {
	switch {
	case !f.said:
		return ""
	case f.port == 0:
		return "off"
	case f.numbers:
		return "metrics"
	case f.port == localserver.DefaultPort:
		return "on"
	}
	return strconv.Itoa(f.port)
}

// Set implements pflag.Value.
func (f *pageFlag) Set(text string) error {
	switch text {
	case "on":
		*f = pageFlag{said: true, port: localserver.DefaultPort}
	case "metrics":
		*f = pageFlag{said: true, numbers: true, port: localserver.DefaultPort}
	case "off":
		*f = pageFlag{said: true}
	default:
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q is none of off, metrics and on, nor a port from 1 to 65535", text)
		}
		*f = pageFlag{said: true, port: int(port)}
	}
	return nil
}

// Type implements pflag.Value.
func (f *pageFlag) Type() string { return "off|metrics|on|PORT" }

// address is where something is served on loopback, "" for nowhere.
func (f *pageFlag) address(root string) string {
	port := f.port
	if !f.said && root == "" {
		port = localserver.DefaultPort
	}
	if port == 0 {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// too reports whether the page is served there.
func (f *pageFlag) too() bool { return f.said && !f.numbers && f.port != 0 }

// clusterPort is the port of the page on the cluster address, 0 for none.
func (f *pageFlag) clusterPort(asked bool) int {
	switch {
	case !asked:
		return 0
	case f.port == 0: // only loopback may be off
		return localserver.DefaultPort
	}
	return f.port
}
