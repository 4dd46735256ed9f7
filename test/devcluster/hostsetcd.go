//go:build linux

package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// etcdMember is a member as etcd's JSON gateway tells of it. A member has no
// name before it has started.
type etcdMember struct {
	ID        string   `json:"ID"`
	Name      string   `json:"name"`
	PeerURLs  []string `json:"peerURLs"`
	IsLearner bool     `json:"isLearner"`
}

func (m etcdMember) is(h *host) bool { return slices.Contains(m.PeerURLs, h.seat.peerURL()) }

// joinEtcd makes the host a voting member, with no data but what the others send.
func (c *Cluster) joinEtcd(ctx context.Context, h *host) error {
	if err := os.RemoveAll(c.etcdData(h.seat)); err != nil {
		return fmt.Errorf("clear the data of etcd: %w", err)
	}
	peers := []string{h.seat.peer()}
	var failed error
	// Others may be joining too, and etcd takes one at a time.
	err := poll(ctx, "etcd to take "+h.seat.name, func() bool {
		var members []etcdMember
		if members, failed = c.addLearner(ctx, h); failed != nil {
			return false
		}
		for _, m := range members {
			if !m.is(h) {
				peers = append(peers, m.Name+"="+m.PeerURLs[0])
			}
		}
		return true
	})
	if err != nil {
		return errors.Join(err, failed)
	}
	h.mu.Lock()
	h.member, h.removed, h.known = false, false, false
	err = c.serveEtcd(h, peers, "existing")
	h.mu.Unlock()
	if err != nil {
		return err
	}
	err = poll(ctx, "etcd to let "+h.seat.name+" vote", func() bool {
		failed = c.promote(ctx, h)
		return failed == nil
	})
	if err != nil {
		return errors.Join(err, failed)
	}
	// Its first word to the others is lost when the data reaches it, and it waits
	// seconds for the answer. Started again, it goes on from what it has.
	h.mu.Lock()
	h.member = true
	c.stopServices(h)
	h.mu.Unlock()
	return c.restartEtcd(ctx, h)
}

// restartEtcd starts the host's member with the data it has.
func (c *Cluster) restartEtcd(ctx context.Context, h *host) error {
	h.mu.Lock()
	err := c.serveEtcd(h, []string{h.seat.peer()}, "existing") // the data knows better
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return c.waitEtcd(ctx, h)
}

// addLearner returns the members, with the host's new one. What is left of an
// earlier one of its address goes first.
func (c *Cluster) addLearner(ctx context.Context, h *host) ([]etcdMember, error) {
	members, err := c.members(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if !m.is(h) {
			continue
		}
		if err := c.askEtcd(ctx, "member/remove", map[string]any{"ID": m.ID}, nil); err != nil {
			return nil, err
		}
	}
	var answer struct{ Members []etcdMember }
	err = c.askEtcd(ctx, "member/add", map[string]any{"peerURLs": []string{h.seat.peerURL()}, "isLearner": true}, &answer)
	return answer.Members, err
}

func (c *Cluster) promote(ctx context.Context, h *host) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.is(h) && m.IsLearner {
			return c.askEtcd(ctx, "member/promote", map[string]any{"ID": m.ID}, nil)
		}
	}
	return nil
}

// EtcdURL is where a node's etcd answers, by plain HTTP: for its health, its metrics and
// its JSON gateway. Without Hosts all nodes have the same one.
func (c *Cluster) EtcdURL(i int) string {
	seats := c.seats()
	return seats[min(i, len(seats)-1)].etcd("")
}

// members are what a quorum says they are.
func (c *Cluster) members(ctx context.Context) ([]etcdMember, error) {
	var answer struct{ Members []etcdMember }
	err := c.askEtcd(ctx, "member/list", map[string]any{"linearizable": true}, &answer)
	return answer.Members, err
}

// askEtcd sends a request to the hosts that are members, until one has done it.
func (c *Cluster) askEtcd(ctx context.Context, what string, in, out any) error {
	var errs []error
	for _, h := range c.hosts {
		h.mu.Lock()
		serves := h.member && !h.removed && len(h.services) > 0
		h.mu.Unlock()
		if !serves || h.isUnplugged() {
			continue
		}
		err := c.post(ctx, h.seat.etcd("/v3/cluster/"+what), in, out)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("ask %s for %s: %w", h.seat.name, what, err))
	}
	if errs == nil {
		return fmt.Errorf("ask for %s: no member of etcd runs", what)
	}
	return errors.Join(errs...)
}

// post speaks JSON, from the switch.
func (c *Cluster) post(ctx context.Context, url string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DialContext: c.wire.sw.dial, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}
