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
	AppImage   = "zedkube.test/app:1"   // does what Prints says
	pauseImage = "zedkube.test/pause:1" // of every pod's sandbox

	// launcherImage is that of the launcher pods of virtual machines. Its programs
	// print as an application does.
	launcherImage = "quay.io/kubevirt/virt-launcher:v1.6.0"
)

// launcherPrograms are what virt-controller starts in it.
var launcherPrograms = []string{"usr/bin/virt-launcher-monitor", "usr/bin/virt-tail"}

// realProgram is what runs in the images and as the first process of a node.
const realProgram = "realnode"

// imagesFile has them all, as docker save writes them.
const imagesFile = "images.tar"

// realBundle is what Options.Real needs beside the programs of every cluster.
var realBundle = bundle{
	"what real nodes run",
	[]string{"realnode/main.go", "realnode/init.go", "realnode/app.go", "realnode/load.go", "realimages.go"},
	[]program{{realProgram, "realnode", ".", plainFlags, "", false}},
	func(_ context.Context, _, into string) error { return packImages(into) },
}

// packImages makes images of the program in dir, beside it. All have the one
// layer.
func packImages(dir string) error {
	program, err := os.ReadFile(filepath.Join(dir, realProgram))
	if err != nil {
		return fmt.Errorf("pack the images: %w", err)
	}
	var layer bytes.Buffer
	inside := []packed{{name: realProgram, mode: 0o755, content: program}}
	for _, name := range launcherPrograms {
		inside = append(inside, packed{name: name, link: "/" + realProgram})
	}
	if err := pack(&layer, inside...); err != nil {
		return fmt.Errorf("pack a layer: %w", err)
	}
	err = writeImages(filepath.Join(dir, imagesFile), layer.Bytes(),
		image{[]string{AppImage, launcherImage}, map[string]any{"Entrypoint": []string{"/" + realProgram, "app"}}},
		image{[]string{pauseImage}, map[string]any{"Entrypoint": []string{"/" + realProgram, "pause"}}})
	if err != nil {
		return fmt.Errorf("pack the images: %w", err)
	}
	return nil
}

// PackImage makes an image of one program that needs nothing else, which runs as user, "" for root.
func PackImage(program, name, user, into string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	var layer bytes.Buffer
	if err := pack(&layer, packed{name: "program", mode: 0o755, content: content}); err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	return writeImages(into, layer.Bytes(), image{[]string{name}, map[string]any{"Entrypoint": []string{"/program"}, "User": user}})
}

// image is its names and its configuration.
type image struct {
	names  []string
	config map[string]any
}

// writeImages packs images of the one layer.
func writeImages(to string, layer []byte, images ...image) error {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	files, manifest := []packed{{name: "layer.tar", mode: 0o644, content: layer}}, []entry{}
	for _, i := range images {
		config, err := json.Marshal(map[string]any{
			"architecture": runtime.GOARCH, "os": "linux", "config": i.config,
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
		})
		if err != nil {
			return fmt.Errorf("describe image %s: %w", i.names[0], err)
		}
		files = append(files, packed{name: digest(config) + ".json", mode: 0o644, content: config})
		manifest = append(manifest, entry{digest(config) + ".json", i.names, []string{"layer.tar"}})
	}
	list, err := json.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("list the images: %w", err)
	}
	var archive bytes.Buffer
	if err := pack(&archive, append(files, packed{name: "manifest.json", mode: 0o644, content: list})...); err != nil {
		return fmt.Errorf("pack the images: %w", err)
	}
	if err := os.WriteFile(to, archive.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	return nil
}

// packed is a file in an archive, or a link to one.
type packed struct {
	name    string
	mode    int64
	content []byte
	link    string
}

func pack(to io.Writer, files ...packed) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content))}
		if f.link != "" {
			header = &tar.Header{Typeflag: tar.TypeSymlink, Name: f.name, Linkname: f.link}
		}
		if err := archive.WriteHeader(header); err != nil {
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
