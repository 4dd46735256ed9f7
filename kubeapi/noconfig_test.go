package kubeapi

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/kubetest"
)

func TestLackOfAKubeconfigIsToldFromOtherSilence(t *testing.T) {
	defer goleak.VerifyNone(t)
	c, tb := newTestClient(t)
	c.Kubeconfig = filepath.Join(t.TempDir(), "k3s.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	defer func() { cancel(); <-done }()
	kubetest.WaitFor(t, "there is no kubeconfig", 3*time.Second, func() bool { return tb.status().NoKubeconfig && !tb.status().Answers() })
	kubetest.WriteFile(t, c.Kubeconfig, kubetest.KubeconfigText("https://127.0.0.1:1", ""))
	kubetest.WaitFor(t, "there is one, and no answer", 3*time.Second, func() bool { return !tb.status().NoKubeconfig && !tb.status().Answers() })
}
