package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestTheProgramForArm64PassesTheStory plays make run with the program for the
// other processor: three emulated agents, and all around them as it is.
func TestTheProgramForArm64PassesTheStory(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("arm64 is this machine's own processor")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		emulator, err = exec.LookPath("qemu-aarch64-static")
	}
	if err != nil {
		if os.Getenv("CI") == "true" && os.Getenv("NO_MIRROR") != "true" {
			t.Fatal("qemu-user is not installed")
		}
		t.Skip("qemu-user is not installed")
	}
	program := filepath.Join(t.TempDir(), "zedkube")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags", "kustomize_disable_go_plugin_support", "-ldflags", "-s -w", "-o", program, "./cmd/zedkube")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	play(t, []string{emulator, program})
}

// play plays the story with a program.
func play(t *testing.T, program []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo-") // sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), options{program: program, dir: dir, patience: emulatedStepTimeout}); err != nil {
		t.Fatalf("%v (what the agents wrote and logged is in %s)", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
