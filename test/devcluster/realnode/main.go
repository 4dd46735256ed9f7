//go:build linux

// Command realnode is what real nodes of a devcluster run that is not
// Kubernetes: the first process of a host, the program of the pause image and
// that of the application image. Under any other name it is the last, whatever
// its arguments: KubeVirt's launchers call it so.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// programs are by the first argument.
var programs = map[string]func(args []string) error{
	"init": runInit, "pause": runPause, "app": runApp,
}

func main() {
	if filepath.Base(os.Args[0]) != "realnode" {
		os.Args = []string{"realnode", "app"}
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: realnode init|pause|app [flags]")
		os.Exit(2)
	}
	err := programs[os.Args[1]](os.Args[2:])
	if errors.Is(err, errTold) {
		os.Exit(1) // no word: what it prints is counted
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "realnode %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// runPause holds the namespaces of a pod.
func runPause([]string) error {
	<-told()
	return nil
}

// told yields when the process shall end. The first process of a namespace gets
// only the signals that it asks for.
func told() <-chan os.Signal {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	return end
}
