package k3setcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	// DefaultServer is the data directory of the k3s server, below /var/lib of the kube container.
	DefaultServer = "rancher/k3s/server"
	// SnapshotFresh is how old a snapshot may be when k3s is changed: what was written after it
	// is lost when it is restored.
	SnapshotFresh = 30 * time.Minute
	// DefaultURL is the supervisor of this server's k3s.
	DefaultURL = "https://127.0.0.1:6443"

	// snapshotName is what ours begin with, and keepOurs how many of these k3s keeps: it removes
	// by the name, so that neither its own nor an operator's go.
	snapshotName = "zedkube"
	keepOurs     = 3

	saveFor       = 5 * time.Minute // how long a snapshot may take
	maxAnswer     = 64 << 10        // bytes
	maxSnapshots  = 1000            // files that are looked at
	maxSnapshot   = 16 << 30        // bytes; etcd advises against more than 8 GiB
	spare         = 256 << 20       // bytes that stay free beside a copy: etcd and the device need some
	databasePages = 512             // the size of a database is a multiple of it
)

// Snapshots are those of this server.
type Snapshots struct {
	Server string // data directory of the k3s server
	URL    string // DefaultURL
}

// Snapshot is one of them.
type Snapshot struct {
	Name string
	Size int64     // bytes
	At   time.Time // when it was written
}

func (s Snapshots) dir() string { return filepath.Join(s.Server, "db/snapshots") }

// List lists the snapshots that can be read back, the newest first: those that k3s has
// compressed are left out.
func (s Snapshots) List() ([]Snapshot, error) {
	names, err := safefile.Names(s.dir(), maxSnapshots)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // k3s makes the directory with the first one
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots of etcd: %w", err)
	}
	var list []Snapshot
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(s.dir(), name))
		if err == nil && info.Mode().IsRegular() && !strings.HasSuffix(name, ".zip") && !strings.HasSuffix(name, ".part") {
			list = append(list, Snapshot{Name: name, Size: info.Size(), At: info.ModTime().UTC()})
		}
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Name, b.Name)) })
	return list, nil
}

// Verify reads a snapshot back: etcd writes the SHA-256 of the database behind it.
func (s Snapshots) Verify(ctx context.Context, name string) error {
	err := verify(ctx, filepath.Join(s.dir(), name))
	if err != nil {
		err = fmt.Errorf("read the snapshot %s back: %w", name, err)
	}
	return err
}

func verify(ctx context.Context, path string) error {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size := info.Size() - sha256.Size
	if size <= 0 || size%databasePages != 0 || size > maxSnapshot {
		return fmt.Errorf("it has %d bytes, which no snapshot has", info.Size())
	}
	sum := sha256.New()
	for left := size; left > 0 && err == nil; err = cmp.Or(err, ctx.Err()) {
		var n int64
		n, err = io.CopyN(sum, f, min(left, 4<<20))
		left -= n
	}
	want := make([]byte, sha256.Size)
	if err == nil {
		_, err = io.ReadFull(f, want)
	}
	if err == nil && !bytes.Equal(want, sum.Sum(nil)) {
		err = errors.New("its content does not match its SHA-256")
	}
	return err
}

// Save has k3s take a snapshot on this server, and reads it back.
func (s Snapshots) Save(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, saveFor)
	defer cancel()
	if err := safefile.CheckSpace(s.Server, spare, filepath.Join(s.Server, "db/etcd/member/snap/db")); err != nil {
		return Snapshot{}, fmt.Errorf("take a snapshot of etcd: %w", err)
	}
	asked := time.Now().Add(-time.Second) // a filesystem's clock may be a tick behind
	name, err := s.save(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("take a snapshot of etcd: %w", err)
	}
	if err := s.Verify(ctx, name); err != nil {
		return Snapshot{}, err
	}
	info, err := os.Lstat(filepath.Join(s.dir(), name))
	if err == nil && info.ModTime().Before(asked) {
		err = fmt.Errorf("take a snapshot of etcd: k3s names %s, which is of %s", name, info.ModTime().UTC().Format(time.RFC3339))
	}
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Name: name, Size: info.Size(), At: info.ModTime().UTC()}, nil
}

func (s Snapshots) save(ctx context.Context) (string, error) {
	password, err := s.password()
	if err != nil {
		return "", err
	}
	ca, err := safefile.Read(filepath.Join(s.Server, "tls/server-ca.crt"), safefile.Small)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		return "", errors.Join(err, errors.New("the authority of k3s cannot be read"))
	}
	body, err := json.Marshal(map[string]any{"operation": "save", "name": []string{snapshotName}, "compress": false, "retention": keepOurs})
	if err != nil {
		return "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/db/snapshot", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	q.Header.Set("Content-Type", "application/json")
	q.SetBasicAuth("server", password)
	var a boundedhttp.Answer
	err = failpoint.As(ctx, "save snapshot of etcd", func() (err error) {
		a, err = boundedhttp.Do(boundedhttp.NewClient(nil, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, 0), q, maxAnswer)
		return err
	})
	if err != nil {
		return "", err
	}
	var made struct{ Created []string }
	if a.Code != http.StatusOK || json.Unmarshal(a.Body, &made) != nil {
		return "", fmt.Errorf("k3s answers %d: %q", a.Code, phrase.Cut(strings.ReplaceAll(string(a.Body), password, ""), 200))
	}
	for _, name := range made.Created {
		if _, err := os.Lstat(filepath.Join(s.dir(), filepath.Base(name))); err == nil && filepath.Base(name) == name {
			return name, nil // a copy in S3 has the same name
		}
	}
	return "", fmt.Errorf("k3s has not written one to %s", s.dir()) // as on a learner
}

// password is the server token's: K10<hash of the authority>::server:<password>, or the
// password alone.
func (s Snapshots) password() (string, error) {
	raw, err := safefile.Read(filepath.Join(s.Server, "token"), 4<<10)
	token := strings.TrimSpace(string(raw))
	if _, secret, is := strings.Cut(token, "::"); is && strings.HasPrefix(token, "K10") {
		_, token, _ = strings.Cut(secret, ":")
	}
	if err == nil && token == "" {
		err = errors.New("it has no password")
	}
	if err != nil {
		return "", fmt.Errorf("read the server token of k3s: %w", err)
	}
	return token, nil
}
