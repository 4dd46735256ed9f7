// Command coredns is CoreDNS with the plugins that the names of workloads use, of which
// its own program has fifty more. It is a module of its own so that none of it is in the
// program's go.mod.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/whoami"
)

func main() {
	dnsserver.Directives = []string{"errors", "cache", "hosts", "whoami"} // in CoreDNS' own order
	coremain.Run()
}
