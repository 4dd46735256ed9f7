package page

import (
	"context"
	"io"
	"sync"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// kube plays the kubelet's logs.
type kube struct {
	mu      sync.Mutex
	text    string
	lines   chan string // what comes while it is followed
	err     error
	options []types.LogOptions
	pods    []string
	open    int
}

func (k *kube) Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.options, k.pods = append(k.options, o), append(k.pods, pod.Name)
	if k.err != nil {
		return nil, k.err
	}
	k.open++
	return &tape{kube: k, ctx: ctx, rest: k.text, follow: o.Follow}, nil
}

// tape is a log that is being read.
type tape struct {
	kube   *kube
	ctx    context.Context
	rest   string
	follow bool
}

func (t *tape) Read(p []byte) (int, error) {
	for t.rest == "" {
		if !t.follow {
			return 0, io.EOF
		}
		select {
		case line, ok := <-t.kube.lines:
			if !ok {
				return 0, io.EOF
			}
			t.rest = line
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (t *tape) Close() error {
	t.kube.mu.Lock()
	defer t.kube.mu.Unlock()
	t.kube.open--
	return nil
}

// app makes an application with a pod of that many containers.
func (s *stage) app(n int, vm bool, containers ...string) string {
	var c types.AppInstanceConfig
	c.UUIDandVersion.UUID = uuid.MustParse("11111111-2222-4333-8444-00000000000" + string(rune('0'+n)))
	c.DisplayName, c.FixedResources.VirtualizationMode = "app"+string(rune('0'+n)), types.VirtualizationNoHyper
	pod := types.Pod{Namespace: "eve-kube-app", Name: c.DisplayName + "-0", App: c.KubeName()}
	if vm {
		c.FixedResources.VirtualizationMode = types.VirtualizationHVM
		pod.AppDomain = c.UUIDandVersion.UUID.String() + ".1.1"
	}
	for _, name := range containers {
		pod.Containers = append(pod.Containers, types.Container{Name: name, Now: types.ContainerRun{ID: "containerd://" + name}})
	}
	key := c.UUIDandVersion.UUID.String()
	_ = s.configs.Publish(key, c)
	_ = s.pods.Publish(pod.Key(), pod)
	return key
}
