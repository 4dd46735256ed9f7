//go:build linux

package devcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	kubeVersion = "v1.34.4" // of devkube/go.mod; kubectl refuses servers without a version
	kwokModule  = "sigs.k8s.io/kwok"
	kwokPackage = "sigs.k8s.io/kwok/cmd/kwok"
	buildTags   = "kustomize_disable_go_plugin_support"
	plainFlags  = "-s -w"
	kubeFlags   = plainFlags + gitVersion + kubeVersion + gitMinor + "34"

	// How the version is linked in.
	gitVersion = " -X k8s.io/component-base/version.gitVersion="
	gitMinor   = " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor="
)

// program is one binary of the cluster: what to build, where, and how.
type program struct {
	name, dir, pkg, ldflags string
	modfile                 string // in place of go.mod; "" for that
	cgo                     bool   // it is linked with C
}

// bundle is the programs that are built together, and what else they need.
type bundle struct {
	what     string
	sources  []string // what decides about it, in the directory of this package
	programs []program
	finish   func(ctx context.Context, source, into string) error // nil for nothing
}

// baseBundle is what every cluster needs.
var baseBundle = bundle{
	"Kubernetes " + kubeVersion + " and kwok",
	[]string{"devkube/go.mod", "devkube/go.sum", "devkube/main.go", "devkube/multicall/multicall.go", "kwok/go.mod", "kwok/go.sum"},
	[]program{
		{"devkube", "devkube", ".", kubeFlags, "", false},
		{"kwok", "kwok", kwokPackage, plainFlags, "", false},
	},
	copyStages,
}

// nodeBundle is what Options.Real and Cluster.Kubectl need beside it.
var nodeBundle = bundle{
	"kubelet and kubectl " + kubeVersion,
	[]string{"devkube/go.mod", "devkube/go.sum", "devkube/devnode/main.go", "devkube/multicall/multicall.go"},
	[]program{{"devnode", "devkube", "./devnode", kubeFlags, "", false}},
	nil,
}

// kubevirtBundle is what Options.KubeVirt needs beside it.
var kubevirtBundle = bundle{
	"KubeVirt",
	[]string{"kubevirt/go.mod", "kubevirt/go.sum", "kubevirt/main.go", "kubevirt/objects.go"},
	[]program{
		{"virt-api", "kubevirt", "kubevirt.io/kubevirt/cmd/virt-api", plainFlags, "", false},
		{"virt-controller", "kubevirt", "kubevirt.io/kubevirt/cmd/virt-controller", plainFlags, "", false},
	},
	printKubeVirt,
}

// stageFiles are the stages of kwok's own module that our kubelets play.
var stageFiles = []string{
	"kustomize/stage/node/fast/node-initialize.yaml",
	"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"kustomize/stage/pod/fast/pod-ready.yaml",
	"kustomize/stage/pod/fast/pod-complete.yaml",
}

// binaries is a filled cache entry: the programs of a bundle and their files.
type binaries string

func (b binaries) path(name string) string { return filepath.Join(string(b), name) }

// Build makes the programs of a cluster, unless they are cached already, and
// returns the directory they are in. It needs the go command and, the first
// time, the modules; that takes some minutes, with a line on log every few
// seconds. Source is this package's directory; "" finds it.
func Build(ctx context.Context, source string, log io.Writer) (string, error) {
	return baseBundle.build(ctx, source, log)
}

// BuildAll makes what only some clusters need too: kubelet, kubectl, KubeVirt and NextPatch.
func BuildAll(ctx context.Context, source string, log io.Writer) error {
	for _, b := range []bundle{baseBundle, nodeBundle, kubevirtBundle, NextPatch.bundle()} {
		if _, err := b.build(ctx, source, log); err != nil {
			return err
		}
	}
	return nil
}

func (b bundle) build(ctx context.Context, source string, log io.Writer) (string, error) {
	source, err := sourceDir(ctx, source)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	key, err := b.cacheKey(ctx, source)
	if err != nil {
		return "", err
	}
	entry := filepath.Join(cache, "zedkube-devcluster", key)
	if isDir(entry) {
		return entry, nil
	}
	if err := os.MkdirAll(filepath.Dir(entry), 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := lock(ctx, entry+".lock", log)
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(entry) {
		return entry, nil
	}
	return entry, b.fill(ctx, source, entry, log)
}

// fill builds into a directory beside the entry and renames it when it is
// whole, so that an entry that exists is complete. The caller holds the lock.
func (b bundle) fill(ctx context.Context, source, entry string, log io.Writer) error {
	partial := entry + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("clear an unfinished build: %w", err)
	}
	defer os.RemoveAll(partial)
	if err := os.MkdirAll(filepath.Join(partial, "tmp"), 0o755); err != nil {
		return fmt.Errorf("make the build directory: %w", err)
	}
	fmt.Fprintf(log, "devcluster: building %s into %s; this happens once and takes some minutes\n", b.what, entry)
	for _, p := range b.programs {
		if err := p.build(ctx, source, partial, log); err != nil {
			return err
		}
	}
	if b.finish != nil {
		if err := b.finish(ctx, source, partial); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(partial, "tmp")); err != nil {
		return fmt.Errorf("clear the build directory: %w", err)
	}
	if err := os.Rename(partial, entry); err != nil {
		return fmt.Errorf("put the build in place: %w", err)
	}
	return nil
}

// copyStages takes kwok's own stages out of its module: a release of kwok and
// its stages belong together.
func copyStages(ctx context.Context, source, into string) error {
	module, err := goOutput(ctx, filepath.Join(source, "kwok"), "list", "-m", "-f", "{{.Dir}}", kwokModule)
	if err != nil {
		return fmt.Errorf("find the kwok module: %w", err)
	}
	for _, name := range stageFiles {
		stage, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return fmt.Errorf("read a stage of kwok: %w", err)
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(name)), stage, 0o644); err != nil {
			return fmt.Errorf("copy a stage of kwok: %w", err)
		}
	}
	return nil
}

// printKubeVirt writes down what is to be installed of KubeVirt: finding out
// takes seconds each time.
func printKubeVirt(ctx context.Context, source, into string) error {
	objects, err := goOutput(ctx, filepath.Join(source, "kubevirt"), "run", "-mod=readonly", ".")
	if err != nil {
		return fmt.Errorf("print the objects of KubeVirt: %w", err)
	}
	if err := os.WriteFile(filepath.Join(into, kubevirtObjects), []byte(objects), 0o644); err != nil {
		return fmt.Errorf("write the objects of KubeVirt: %w", err)
	}
	return nil
}

// cacheKey is a hash of everything that decides what a build makes.
func (b bundle) cacheKey(ctx context.Context, source string) (string, error) {
	hash := sha256.New()
	for _, name := range b.sources {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read the sources of the cluster: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	env, err := goOutput(ctx, filepath.Join(source, b.programs[0].dir), "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", fmt.Errorf("ask for the Go version: %w", err)
	}
	fmt.Fprintln(hash, env, stageFiles)
	for _, p := range b.programs {
		fmt.Fprintln(hash, p.flags())
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}
