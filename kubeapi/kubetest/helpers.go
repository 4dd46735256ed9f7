package kubetest

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func At(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
}

func TestPod(namespace, name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func KubeconfigText(server, ca string) string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster: {%s server: %q}
  name: default
contexts:
- context: {cluster: default, user: default}
  name: default
current-context: default
kind: Config
users:
- name: default
  user: {token: secret-token}
`, ca, server)
}

func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// WaitFor waits for what takes up to quiet on a quiet machine; other tests may
// have both processors.
func WaitFor(t *testing.T, what string, quiet time.Duration, ok func() bool) {
	t.Helper()
	limit := 4 * quiet
	for end := time.Now().Add(limit); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// Heap is what is in use after the garbage is gone.
func Heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func Keys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func Quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
