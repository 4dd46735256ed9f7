//go:build linux

package devcluster

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

func (c *Cluster) waitEtcd(ctx context.Context, h *host) error {
	return poll(ctx, "etcd on "+h.seat.name, func() bool {
		return c.get(ctx, h, h.seat.etcd("/health"))
	})
}

func (c *Cluster) waitAPI(ctx context.Context, h *host) error {
	return poll(ctx, "the API server on "+h.seat.name, func() bool {
		return c.get(ctx, h, h.seat.server()+"/readyz")
	})
}

// get says whether a program of the host answers the host itself with 200.
func (c *Cluster) get(ctx context.Context, h *host, url string) bool {
	_, ok := c.page(ctx, h, url)
	return ok
}

// page is what a program of the host answers the host itself, if with 200.
func (c *Cluster) page(ctx context.Context, h *host, url string) (page string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	config, err := rest.TLSConfigFor(c.rest)
	if err != nil {
		return "", false
	}
	client := http.Client{Transport: &http.Transport{DialContext: h.space.dial, TLSClientConfig: config, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", false
	}
	response, err := client.Do(request)
	if err != nil {
		return "", false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	return string(body), err == nil && response.StatusCode == http.StatusOK
}
