// Command image checks what `make image` has made, an OCI layout: an image for each architecture, with its labels and
// annotations and nothing in it that is not meant to be there, and a static program that runs from the unpacked root:
// it knows its version, serves a device without a cluster, tells its status, and ends when it is told to.
//
//	go run ./test/image -version V -revision R [-qemu PROGRAM] LAYOUT
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	var w wanted
	flag.StringVar(&w.version, "version", "", "what the program calls itself")
	flag.StringVar(&w.revision, "revision", "", "of which source it is")
	qemu := flag.String("qemu", "", "what runs programs of arm64 on amd64; without it they are only looked at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := check(ctx, flag.Arg(0), w, *qemu); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		stop()
		os.Exit(1)
	}
}

// check unpacks the image of each architecture and runs it.
func check(ctx context.Context, layout string, w wanted, qemu string) error {
	images, err := readLayout(layout)
	if err != nil {
		return err
	}
	if len(images) != len(architectures) {
		return fmt.Errorf("%d images, want one for each of %v", len(images), architectures)
	}
	var all error
	for _, arch := range architectures {
		all = errors.Join(all, checkOne(ctx, layout, images[arch], arch, w, qemu))
	}
	return all
}

func checkOne(ctx context.Context, layout string, i image, arch string, w wanted, qemu string) error {
	if err := i.says(arch, w); err != nil {
		return fmt.Errorf("%s: %w", arch, err)
	}
	root, err := os.MkdirTemp("", "image-"+arch+"-")
	if err != nil {
		return fmt.Errorf("make room to unpack: %w", err)
	}
	defer os.RemoveAll(root)
	files, err := i.unpack(layout, root)
	if err == nil {
		err = holds(files)
	}
	if err == nil {
		err = static(root+"/zedkube", arch)
	}
	ran := "not run without qemu-user"
	if r := newRunner(root, arch, qemu); err == nil && r != nil {
		ran = r.how + ", serves and ends"
		if err = r.runs(ctx, w.version); err == nil {
			err = r.serves(ctx, root)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", arch, err)
	}
	fmt.Printf("image for linux/%s: %d files, static, %s\n", arch, len(files), ran)
	return nil
}
