//go:build linux

package devcluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// The images that real nodes have. No others can be had there: nothing is pulled.
const (
	AppImage   = imagePrefix + "app:1"   // does what Prints says
	pauseImage = imagePrefix + "pause:1" // of every pod's sandbox

	imagePrefix = "zedkube.test/"
)

// realProgram is what runs in the images and as the first process of a node.
const realProgram = "realnode"

// imagesFile has them all, as docker save writes them.
const imagesFile = "images.tar"

// realBundle is what Options.Real needs beside the programs of every cluster.
var realBundle = bundle{
	"what real nodes run",
	[]string{"realnode/main.go", "realnode/init.go", "realnode/app.go"},
	[]program{{realProgram, "realnode", ".", "-s -w"}},
	func(_ context.Context, _, into string) error { return packImages(into) },
}

// packImages makes images of the program in dir, beside it. All have the one
// layer; the same program gives the same bytes.
func packImages(dir string) error {
	program, err := os.ReadFile(filepath.Join(dir, realProgram))
	if err != nil {
		return fmt.Errorf("pack the images: %w", err)
	}
	var layer, archive bytes.Buffer
	if err := pack(&layer, packed{realProgram, 0o755, program}); err != nil {
		return fmt.Errorf("pack a layer: %w", err)
	}
	type image struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	files, manifest := []packed{{"layer.tar", 0o644, layer.Bytes()}}, []image{}
	for _, what := range []string{"app", "pause"} {
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH, "os": "linux",
			"config": map[string]any{"Entrypoint": []string{"/" + realProgram, what}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer.Bytes())}},
		})
		if err != nil {
			return fmt.Errorf("describe the image of %s: %w", what, err)
		}
		files = append(files, packed{digest(config) + ".json", 0o644, config})
		manifest = append(manifest, image{digest(config) + ".json", []string{imagePrefix + what + ":1"}, []string{"layer.tar"}})
	}
	list, err := json.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("list the images: %w", err)
	}
	if err := pack(&archive, append(files, packed{"manifest.json", 0o644, list})...); err != nil {
		return fmt.Errorf("pack the images: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, imagesFile), archive.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	return nil
}

// packed is a file in an archive.
type packed struct {
	name    string
	mode    int64
	content []byte
}

func pack(to io.Writer, files ...packed) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
