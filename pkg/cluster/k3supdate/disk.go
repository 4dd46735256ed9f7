package k3supdate

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
)

// Device is what this device has of k3s.
type Device struct {
	Files    k3sbinary.Files
	Releases k3sbinary.Releases // without URL nothing is downloaded
	Metrics  string             // of etcd; "" where it is not to be asked
	URL      string             // k3setcd.DefaultURL
}

// NewDevice is the one with that directory of the kube container and that k3s; here where it is
// the device that this program runs on. Of another root nobody answers.
func NewDevice(varLib string, k3s k3sprocess.K3s, here bool) Device {
	d := Device{Files: k3sbinary.Files{VarLib: varLib, K3s: k3s, Need: k3sbinary.DefaultNeed}, URL: k3setcd.DefaultURL}
	if here {
		d.Releases, d.Metrics = k3sbinary.NewReleases(runtime.GOARCH), k3setcd.DefaultMetrics
	}
	return d
}

// Found is what a look at the device has found.
type Found struct {
	None     error            // why no k3s is there, or can be reached
	Binary   string           // version of the k3s that is started next; "" where it is not known
	Staged   k3sbinary.Staged // zero for none
	Sum      string           // SHA-256 of that
	Space    error            // why there is not enough
	Err      error            // why something of these is not known
	HasEtcd  bool
	Etcd     k3setcd.Health
	EtcdErr  error
	Snapshot k3setcd.Snapshot // the newest, zero for none; it was read back where SnapshotErr is nil
	SnapErr  error

	ran k3sbinary.Ran // Binary
}

// Look says what is there. What has not changed since the look before is not read again.
func (d Device) Look(ctx context.Context, before Found) (f Found) {
	base, err := d.Files.Base()
	if err != nil {
		return Found{None: err}
	}
	if f.ran, err = before.ran.Again(ctx, filepath.Join(base, "k3s/bin/k3s")); err == nil {
		f.Binary, err = f.ran.Version, f.ran.Err
	}
	var err2 error
	if f.Staged, err2 = d.Files.Staged(); f.Staged == before.Staged {
		f.Sum = before.Sum
	}
	if f.Staged.Version != "" && f.Sum == "" && err2 == nil {
		f.Sum, err2 = f.Staged.Sum(ctx)
	}
	f.Err, f.Space = errors.Join(err, err2), d.Files.CheckSpace()
	d.lookAtEtcd(ctx, filepath.Join(base, k3setcd.DefaultServer), before, &f)
	return f
}

func (d Device) lookAtEtcd(ctx context.Context, server string, before Found, f *Found) {
	if f.HasEtcd = k3setcd.Exists(server); !f.HasEtcd {
		return
	}
	f.EtcdErr = errors.New("etcd is not asked on another root")
	if d.Metrics != "" {
		f.Etcd, f.EtcdErr = k3setcd.Look(ctx, d.Metrics)
	}
	snapshots := k3setcd.Snapshots{Server: server}
	list, err := snapshots.List()
	if f.SnapErr = err; len(list) == 0 {
		return
	}
	f.Snapshot = list[max(0, slices.IndexFunc(list, func(s k3setcd.Snapshot) bool { return !s.At.After(time.Now().Add(ahead)) }))]
	switch known := f.Snapshot == before.Snapshot && before.SnapErr == nil; {
	case known, time.Since(f.Snapshot.At) > k3setcd.SnapshotFresh: // it does not count anyway
	default:
		f.SnapErr = snapshots.Verify(ctx, f.Snapshot.Name)
	}
}

// Fetch downloads a version and stages it. Its SHA-256 has to be sum, or where that is ""
// the one in the release's own list.
func (d Device) Fetch(ctx context.Context, version, sum string) (err error) {
	if d.Releases.URL == "" {
		return errors.New("nothing is downloaded on another root")
	}
	if err := d.Files.CheckSpace(); err != nil {
		return err
	}
	if sum == "" {
		if sum, err = d.Releases.Sum(ctx, version); err != nil {
			return err
		}
	}
	return d.Releases.Fetch(ctx, version, func(ctx context.Context, from io.Reader) error {
		_, err := d.Files.Stage(ctx, from, version, sum)
		return err
	})
}

// Save has k3s take a snapshot of etcd.
func (d Device) Save(ctx context.Context) error {
	base, err := d.Files.Base()
	if err != nil {
		return err
	}
	_, err = k3setcd.Snapshots{Server: filepath.Join(base, k3setcd.DefaultServer), URL: d.URL}.Save(ctx)
	return err
}

// Install puts the staged binary in its place and keeps the former one. The SQLite of a single
// node, of which no snapshot is taken, is copied first.
func (d Device) Install(ctx context.Context, version, sum string) error {
	base, err := d.Files.Base()
	if err != nil {
		return err
	}
	server := filepath.Join(base, k3setcd.DefaultServer)
	if _, err := os.Lstat(filepath.Join(server, "db/state.db")); err == nil && !k3setcd.Exists(server) {
		if _, err := k3setcd.CopySQLite(ctx, server, time.Now()); err != nil {
			return err
		}
	}
	return d.Files.Install(ctx, version, sum)
}

// Restore puts the former binary back.
func (d Device) Restore(ctx context.Context, version string) error {
	return d.Files.Restore(ctx, version)
}
