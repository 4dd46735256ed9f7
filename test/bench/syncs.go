package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// syncs counts the fsyncs of publications under strace.
func (b *bench) syncs(ctx context.Context) error {
	measured := "not measured: no strace"
	if strace, err := exec.LookPath("strace"); err == nil {
		var per [2]float64
		for i, role := range []string{"write", "keep"} {
			if per[i], err = b.traced(ctx, strace, role); err != nil {
				return err
			}
		}
		measured = fmt.Sprintf("%.2f / %.2f", per[0], per[1])
	}
	b.add("fsyncs per publication, plain / persistent", "2 / 4", "≤ 2 / 3", "%s", measured)
	return nil
}

func (b *bench) traced(ctx context.Context, strace, role string) (float64, error) {
	root, err := os.MkdirTemp(memory(), "zedkube-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	log := filepath.Join(root, "strace")
	if out, err := exec.CommandContext(ctx, strace, "-f", "-o", log, "-e", "trace=fsync,fdatasync,syncfs,sync", self, "-role", role, "-root", root).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("strace: %w: %s", err, out)
	}
	content, err := os.ReadFile(log)
	return float64(strings.Count(string(content), "sync(")) / written, err
}
