package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// architectures are those that there is an image for.
var architectures = []string{"amd64", "arm64"}

// The parts of an OCI layout that are read (https://github.com/opencontainers/image-spec).
type (
	descriptor struct {
		Digest   string `json:"digest"`
		Platform struct {
			OS           string `json:"os"`
			Architecture string `json:"architecture"`
		} `json:"platform"`
	}
	index struct {
		Manifests []descriptor `json:"manifests"`
	}
	manifest struct {
		Manifests   []descriptor      `json:"manifests"` // where it is an index in truth
		Config      descriptor        `json:"config"`
		Layers      []descriptor      `json:"layers"`
		Annotations map[string]string `json:"annotations"`
	}
	config struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Config       struct {
			User       string            `json:"User"`
			Entrypoint []string          `json:"Entrypoint"`
			Labels     map[string]string `json:"Labels"`
		} `json:"config"`
	}
	image struct {
		manifest manifest
		config   config
	}
)

// readLayout finds the image of each architecture.
func readLayout(layout string) (map[string]image, error) {
	content, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return nil, fmt.Errorf("read layout: %w", err)
	}
	var top index
	if err := json.Unmarshal(content, &top); err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	if len(top.Manifests) != 1 {
		return nil, fmt.Errorf("%d entries in the layout, want one index for all architectures", len(top.Manifests))
	}
	var list manifest
	if err := readBlob(layout, top.Manifests[0].Digest, &list); err != nil {
		return nil, err
	}
	images := map[string]image{}
	for _, d := range list.Manifests {
		var i image
		err := readBlob(layout, d.Digest, &i.manifest)
		if err == nil {
			err = readBlob(layout, i.manifest.Config.Digest, &i.config)
		}
		if err != nil {
			return nil, err
		}
		if _, twice := images[d.Platform.Architecture]; twice || d.Platform.OS != "linux" {
			return nil, fmt.Errorf("platform %s/%s: twice, or not Linux", d.Platform.OS, d.Platform.Architecture)
		}
		images[d.Platform.Architecture] = i
	}
	return images, nil
}

// blob is the content that digest names.
func blob(layout, digest string) ([]byte, error) {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(sum) != 2*sha256.Size || strings.ContainsAny(sum, "/.") {
		return nil, fmt.Errorf("digest %q is none of SHA-256", digest)
	}
	content, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", sum))
	if err != nil {
		return nil, fmt.Errorf("read blob: %w", err)
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("blob %s has another content", digest)
	}
	return content, nil
}

func readBlob(layout, digest string, into any) error {
	content, err := blob(layout, digest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("read blob %s: %w", digest, err)
	}
	return nil
}

// unpack writes the image's files below root and names them.
func (i image) unpack(layout, root string) (files map[string]os.FileMode, err error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	defer dir.Close()
	files = map[string]os.FileMode{}
	for _, d := range i.manifest.Layers {
		layer, err := blob(layout, d.Digest)
		if err != nil {
			return nil, err
		}
		if err := unpackLayer(layer, dir, files); err != nil {
			return nil, fmt.Errorf("unpack layer %s: %w", d.Digest, err)
		}
	}
	return files, nil
}

func unpackLayer(layer []byte, dir *os.Root, files map[string]os.FileMode) error {
	var in io.Reader = bytes.NewReader(layer)
	if bytes.HasPrefix(layer, []byte{0x1f, 0x8b}) {
		var err error
		if in, err = gzip.NewReader(in); err != nil {
			return err
		}
	}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		name := strings.Trim(filepath.Clean(h.Name), "/")
		mode := h.FileInfo().Mode()
		switch {
		case name == ".":
		case !mode.IsRegular():
			return fmt.Errorf("%s is no regular file", h.Name)
		default:
			files[name] = mode
			if err := unpackFile(archive, dir, name, mode); err != nil {
				return err
			}
		}
	}
}

func unpackFile(from io.Reader, dir *os.Root, name string, mode os.FileMode) error {
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
