package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/test/agent"
)

func TestACommandOfThePageIsAProcessOfItsOwn(t *testing.T) {
	run := runner(device.Options{Root: t.TempDir(), Program: agent.Build(t)})
	var out bytes.Buffer
	if err := run(t.Context(), &out, "version"); err != nil || strings.TrimSpace(out.String()) == "" {
		t.Errorf("version: %q, %v", out.String(), err)
	}
	out.Reset()
	if err := run(t.Context(), &out, "drain", "nonsense"); err == nil || !strings.HasPrefix(err.Error(), "unknown command") || out.Len() > 0 {
		t.Errorf("an unknown command: %q, %v", out.String(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, &out, "version"); err == nil {
		t.Error("a command runs whose request is over")
	}
}

func TestTheEndOfWhatACommandSaysIsKept(t *testing.T) {
	var text tail
	for range 100 {
		_, _ = text.Write([]byte(strings.Repeat("x", 100)))
	}
	_, _ = text.Write([]byte("the end"))
	if len(text) != maxWrong || !strings.HasSuffix(string(text), "the end") {
		t.Errorf("%d bytes, %q", len(text), text[max(len(text)-10, 0):])
	}
}
