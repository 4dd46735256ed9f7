package k3sbinary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// DefaultReleases is where k3s publishes its releases.
	DefaultReleases = "https://github.com/k3s-io/k3s/releases/download"

	maxList      = 64 << 10         // bytes of a release's list of sums
	listWithin   = time.Minute      // for that list
	maxRedirects = 5                // GitHub needs one
	fetchWithin  = 30 * time.Minute // for a binary
)

// Releases is where binaries and their sums come from.
type Releases struct {
	URL    string // DefaultReleases
	Arch   string // runtime.GOARCH
	Client *http.Client
}

// NewReleases asks k3s' own releases, as the kube container does: by the authorities of the
// system, and through the proxy of the environment if there is one.
func NewReleases(arch string) Releases {
	return Releases{URL: DefaultReleases, Arch: arch, Client: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: listWithin, ResponseHeaderTimeout: listWithin},
	}}
}

// Sum is the SHA-256 of a version's binary in the release's own list.
func (r Releases) Sum(ctx context.Context, version string) (sum string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	name := "sha256sum-" + r.Arch + ".txt"
	err = r.get(ctx, version, name, func(body io.Reader) error {
		list, err := io.ReadAll(io.LimitReader(body, maxList))
		if err != nil {
			return fmt.Errorf("download %s: %w", name, err)
		}
		for line := range strings.Lines(string(list)) {
			if f := strings.Fields(line); len(f) == 2 && f[1] == r.file() && CheckSum(f[0]) == nil {
				sum = f[0]
				return nil
			}
		}
		return fmt.Errorf("%s of k3s %s has no sum of %s", name, version, r.file())
	})
	return sum, err
}

// Fetch lets use read a version's binary.
func (r Releases) Fetch(ctx context.Context, version string, use func(context.Context, io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	return r.get(ctx, version, r.file(), func(body io.Reader) error { return use(ctx, body) })
}

// file is what a release calls the binary.
func (r Releases) file() string {
	if r.Arch == "amd64" {
		return "k3s"
	}
	return "k3s-" + r.Arch
}

func (r Releases) get(ctx context.Context, version, file string, use func(io.Reader) error) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/"+url.QueryEscape(version)+"/"+file, nil)
	if err != nil {
		return err
	}
	client := *r.Client
	client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		if len(before) > maxRedirects || next.URL.Scheme != "https" {
			return errors.New("it is redirected too often, or to an address without TLS")
		}
		return nil
	}
	answer, err := client.Do(q)
	if err != nil {
		return fmt.Errorf("download %s: %w", file, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("download %s of k3s %s: the server answers %d %s", file, version, answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return use(answer.Body)
}
