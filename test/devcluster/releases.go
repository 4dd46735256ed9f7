//go:build linux

package devcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Release is what the control plane of a host runs, and with it all of a k3s server.
type Release int

// The releases.
const (
	Usual     Release = iota // Kubernetes 1.34.4, etcd 3.6.4
	NextPatch                // the same programs, linked as Kubernetes 1.34.5
	NextMinor                // Kubernetes 1.35.4, etcd 3.6.5
	OldEtcd                  // the usual Kubernetes, etcd 3.5.21
)

// patchVersion and minorVersion are what the API servers of NextPatch and NextMinor report.
// devkube/next.mod has the modules of NextMinor; docs/contributing.md says how to change it.
const (
	patchVersion = "v1.34.5"
	minorVersion = "v1.35.4"
)

// Version is that of Kubernetes, as the API server reports it.
func (r Release) Version() string {
	switch r {
	case NextPatch:
		return patchVersion
	case NextMinor:
		return minorVersion
	}
	return kubeVersion
}

// bundle is what is built for it beside the usual programs; nothing for Usual.
func (r Release) bundle() bundle {
	devkube := []string{"devkube/main.go", "devkube/multicall/multicall.go"}
	switch r {
	case NextPatch:
		return bundle{
			"Kubernetes " + patchVersion,
			append(devkube, "devkube/go.mod", "devkube/go.sum"),
			[]program{{"devkube", "devkube", ".", plainFlags + gitVersion + patchVersion + gitMinor + "34", "", false}},
			nil,
		}
	case NextMinor:
		return bundle{
			"Kubernetes " + minorVersion,
			append(devkube, "devkube/next.mod", "devkube/next.sum"),
			[]program{{"devkube", "devkube", ".", plainFlags + gitVersion + minorVersion + gitMinor + "35", "next.mod", false}},
			nil,
		}
	case OldEtcd:
		return bundle{
			"etcd 3.5",
			[]string{"etcd35/go.mod", "etcd35/go.sum", "etcd35/main.go"},
			[]program{{"etcd", "etcd35", ".", plainFlags, "", false}},
			nil,
		}
	}
	return bundle{}
}

// programs are the paths of what it runs in place of the usual programs.
func (r Release) programs(ctx context.Context, source string, log io.Writer) (map[string]string, error) {
	if r == Usual {
		return nil, nil
	}
	dir, err := r.bundle().build(ctx, source, log)
	if err != nil {
		return nil, err
	}
	if r == OldEtcd {
		return map[string]string{"etcd": binaries(dir).path("etcd")}, nil
	}
	all := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all[name] = binaries(dir).path("devkube")
	}
	return all, nil
}

// BuildReleases makes the programs of the releases that BuildAll leaves out.
func BuildReleases(ctx context.Context, source string, log io.Writer) error {
	for _, r := range []Release{NextMinor, OldEtcd} {
		if _, err := r.programs(ctx, source, log); err != nil {
			return err
		}
	}
	return nil
}

// UseRelease lets the control plane of host i run this release from its next start on. It
// is built when it is first wanted.
func (c *Cluster) UseRelease(ctx context.Context, i int, r Release) error {
	programs, err := r.programs(ctx, c.source, c.log)
	if err != nil {
		return err
	}
	h := c.hosts[i]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.programs = programs
	return nil
}

// EtcdVersion is the version of host i's member and that of the cluster, by its own word.
func (c *Cluster) EtcdVersion(ctx context.Context, i int) (server, cluster string, err error) {
	h := c.hosts[i]
	page, ok := c.page(ctx, h, h.seat.etcd("/version"))
	if !ok {
		return "", "", fmt.Errorf("etcd of %s does not say its version", h.seat.name)
	}
	var answer struct {
		Server  string `json:"etcdserver"`
		Cluster string `json:"etcdcluster"`
	}
	if err := json.Unmarshal([]byte(page), &answer); err != nil {
		return "", "", fmt.Errorf("read the version of etcd of %s: %w", h.seat.name, err)
	}
	return answer.Server, answer.Cluster, nil
}
