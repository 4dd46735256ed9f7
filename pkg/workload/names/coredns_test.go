package names

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// startCoreDNS runs the real one with that server block, imported as k3s does, until it
// answers for a name, and returns who asks it.
func startCoreDNS(t *testing.T, block, name string) *net.Resolver {
	t.Helper()
	program := filepath.Join(t.TempDir(), "coredns")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../../test/coredns", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off") // as all of this program's tools, compiled once
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build CoreDNS: %v\n%s", err, out)
	}
	for range 20 { // a port that is free may be taken by somebody else meanwhile
		address := freeAddress(t)
		ended := serve(t, program, address, block)
		dns := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
		for begin, up := time.Now(), true; up; {
			_, err := dns.LookupHost(t.Context(), name)
			if err == nil {
				return dns
			}
			if time.Since(begin) > time.Minute {
				t.Fatal(err)
			}
			select {
			case <-ended:
				up = false
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	t.Fatal("CoreDNS does not start")
	return nil
}

// freeAddress is one of this machine that nobody uses just now. The kernel gives its port to
// no client: CoreDNS does not listen where one of a busy machine has just been.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		tcp, err := net.Listen("tcp", fmt.Sprint(":", port))
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", fmt.Sprint(":", port))
		_ = tcp.Close()
		if err == nil {
			_ = udp.Close()
			return fmt.Sprint("127.0.0.1:", port)
		}
	}
	t.Fatal("no port is free")
	return ""
}

// serve runs CoreDNS until the test ends; ended is closed when it has ended by itself.
func serve(t *testing.T, program, address, block string) (ended <-chan struct{}) {
	t.Helper()
	dir := t.TempDir()
	_, port, _ := net.SplitHostPort(address)
	corefile := filepath.Join(dir, "Corefile")
	for file, text := range map[string]string{
		corefile:                            fmt.Sprintf(".:%s {\n    errors\n    whoami\n}\nimport %s/*.server\n", port, dir),
		filepath.Join(dir, "eve-ni.server"): strings.ReplaceAll(block, "internal:53", "internal:"+port),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.CommandContext(t.Context(), program, "-conf", corefile)
	server.Stdout, server.Stderr = t.Output(), t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Wait() }()
	t.Cleanup(func() { _ = server.Process.Kill(); <-done })
	return done
}

func TestCoreDNSAnswersForTheNames(t *testing.T) {
	office, roof := entry("db", "office", "10.55.0.10"), entry("db", "shop", "10.66.0.9")
	roof.NIDisplayName, roof.IPv6 = "roof", []string{"fd00:66::9"}
	maps := on("floor", append(hostile(), entry("web", "shop", "10.55.0.8", "10.55.0.12"), entry("press", "eve-kube-app", "10.55.0.9"), office)...)
	maps["eve-ni-roof-allocations"] = on("roof", roof)["eve-ni-roof-allocations"]
	dns := startCoreDNS(t, render(maps, &action{}), "web.internal.")
	ask := func(name string) ([]string, error) {
		got, err := dns.LookupHost(t.Context(), name)
		slices.Sort(got)
		return got, err
	}
	for name, want := range map[string][]string{
		"web.shop.floor.internal.":           {"10.55.0.12", "10.55.0.8"},
		"web.internal.":                      {"10.55.0.12", "10.55.0.8"},
		"WEB.Internal.":                      {"10.55.0.12", "10.55.0.8"},
		"press.eve-kube-app.floor.internal.": {"10.55.0.9"},
		"db.office.floor.internal.":          {"10.55.0.10"},
		"db.shop.roof.internal.":             {"10.66.0.9", "fd00:66::9"},
		"db.internal.":                       nil, // there are two
		"db.shop.floor.internal.":            nil,
		"app.internal.":                      nil, // hostile ones
		"bad.shop.floor.internal.":           nil,
	} {
		if got, err := ask(name); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestCoreDNSTakesAsManyNamesAsAreWritten(t *testing.T) {
	var all []types.Allocation
	for i := range 20000 {
		all = append(all, entry(fmt.Sprintf("a-name-of-some-length-%05d", i), "shop", "10.55.0.7"))
	}
	startCoreDNS(t, render(on("floor", all...), &action{}), "a-name-of-some-length-00042.internal.")
}
