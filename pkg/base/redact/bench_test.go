package redact

import (
	"strings"
	"testing"
)

// BenchmarkLog is what a megabyte of a log costs.
func BenchmarkLog(b *testing.B) {
	line := `{"level":"info","msg":"node press-line-2: 11 of 12 pods are gone, the drain waits for eve-kube-app/label-printer-9f27b-4q8zt2","time":"2026-05-03T06:41:17.250000001Z","source":"zedkube","pid":812}` + "\n" +
		"E0503 06:41:17.250000 812 reflector.go:150] k8s.io/client-go: Failed to watch *v1.Node: the server is currently unable to handle the request\n"
	text := []byte(strings.Repeat(line, (1<<20)/len(line)))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		new(Redactor).Lines(text)
	}
}
