package join

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// What is carried to the device as it is.
//
//go:embed device/join.sh device/leave.sh device/run.sh device/edgecore.service device/address.service
var deviceFiles embed.FS

// File is one of the archive, of which Size bytes are read from Content.
type File struct {
	Name    string
	Mode    int64
	Size    int64
	Content io.Reader
}

func text(name string, mode int64, content string) File {
	return File{name, mode, int64(len(content)), strings.NewReader(content)}
}

// Dir is the directory in the archive.
func (d Device) Dir() string { return "zedkube-edge-" + d.Name }

// Files are those of the archive that are made here.
func (d Device) Files() ([]File, error) {
	config, err := d.Config()
	if err != nil {
		return nil, err
	}
	files := []File{text("edgecore.yaml", 0o600, config), text("token", 0o600, d.Token+"\n"), text("settings.sh", 0o644, d.variables())}
	for _, f := range []struct {
		name string
		mode int64
	}{{"join.sh", 0o755}, {"leave.sh", 0o755}, {"run.sh", 0o755}, {"edgecore.service", 0o644}, {"address.service", 0o644}} {
		content, err := deviceFiles.ReadFile("device/" + f.name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.name, err)
		}
		files = append(files, text(f.name, f.mode, strings.ReplaceAll(string(content), "@ADDRESS@", d.Address)))
	}
	return files, nil
}

// variables are what the scripts read. Nothing in them needs a quote: names and addresses were checked.
func (d Device) variables() string {
	return fmt.Sprintf("NAME=%s\nADDRESS=%s\nARCH=%s\nSOCKET=%s\nSERVERS=\"%s\"\nHTTPS=%d\nHUB=%d\nTUNNEL=%d\n", d.Name, d.Address, d.Arch,
		strings.TrimPrefix(d.Runtime, "unix://"), strings.Join(d.Servers, " "), d.Port("cloudhub-https"), d.Port("cloudhub"), d.Port("tunnelport"))
}

// Write writes the archive. The same files make the same bytes. level is that of gzip.
func (d Device) Write(w io.Writer, level int, files []File) error {
	packed, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	archive := tar.NewWriter(packed)
	put := func(f File) error {
		h := &tar.Header{Name: d.Dir() + "/" + f.Name, Mode: f.Mode, Size: f.Size, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		if _, err := io.CopyN(archive, f.Content, f.Size); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		return nil
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	var sums strings.Builder
	for _, f := range files {
		sum := sha256.New()
		f.Content = io.TeeReader(f.Content, sum)
		if err := put(f); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), f.Name)
	}
	if err := put(text("SHA256SUMS", 0o644, sums.String())); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// Command is one line for a shell on the device that has edgecore in its PATH: the archive without edgecore, and join.sh.
func (d Device) Command() (string, error) {
	files, err := d.Files()
	if err != nil {
		return "", err
	}
	var archive bytes.Buffer
	if err := d.Write(&archive, gzip.BestCompression, files); err != nil {
		return "", err
	}
	return fmt.Sprintf("cd /root && (umask 077; echo %s | base64 -d | tar xzf -) && sh %s/join.sh", base64.StdEncoding.EncodeToString(archive.Bytes()), d.Dir()), nil
}
