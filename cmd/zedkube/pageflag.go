package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/zedkube/zedkube/pkg/localserver"
)

// pageFlag says whether there is a page on loopback, and at which port.
type pageFlag struct {
	said bool // else it is on, and off below a root, where several agents share the machine
	port int  // 0 for off
}

// String implements pflag.Value.
func (f *pageFlag) String() string {
	switch {
	case !f.said:
		return ""
	case f.port == 0:
		return "off"
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
	case "off":
		*f = pageFlag{said: true}
	default:
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("%q is neither on nor off nor a port from 1 to 65535", text)
		}
		*f = pageFlag{said: true, port: int(port)}
	}
	return nil
}

// Type implements pflag.Value.
func (f *pageFlag) Type() string { return "on|off|PORT" }

// address is where the page is, "" for nowhere.
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
