//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// agents lets three devices drain while the other agents of each go away and
// come back, and their topics are torn or somebody else's meanwhile.
func agents(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return (&drainRun{Stage: s}).disturbed(ctx, r.many(), everyStory, func(ctx context.Context, d *drainer, rng *rand.Rand) error {
		bounded, cancel := context.WithTimeout(ctx, endless)
		defer cancel()
		is, _ := d.Watch.Drain.Get(types.Global)
		what := "restart"
		var wrong error
		err := d.RestartAgents(bounded, func() {
			switch rng.IntN(3) {
			case 0:
				wait(ctx, soon(rng, 2*time.Second))
			case 1:
				what = "torn files"
				wrong = torn(ctx, d.Root, rng)
			default:
				what = "hostile sockets"
				wrong = hostile(ctx, d.Root, rng)
			}
		})
		d.Faulted(fmt.Sprintf("agents: %s, %s", what, is.Status))
		return errors.Join(err, wrong)
	})
}

// topicDirs are those of the other agents' topics.
func topicDirs(root string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(root, "run/*/*"))
	var dirs []string
	for _, dir := range all {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() && !strings.HasPrefix(dir, filepath.Join(root, "run/zedkube")) && !strings.HasPrefix(dir, filepath.Join(root, "run/.")) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// torn leaves for some time cut files in the topics whose agents are away, and
// what no agent writes, and gives back what was there.
func torn(ctx context.Context, root string, rng *rand.Rand) error {
	dirs, err := topicDirs(root)
	if err != nil {
		return err
	}
	var errs []error
	kept := map[string][]byte{}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			kept[file] = content
			errs = append(errs, os.WriteFile(file, content[:rng.IntN(len(content))], 0o600))
		}
		for _, name := range unknownFiles {
			errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(invalid[rng.IntN(len(invalid))]), 0o600))
		}
	}
	wait(ctx, soon(rng, 2*time.Second))
	for file, content := range kept {
		errs = append(errs, os.WriteFile(file, content, 0o600))
	}
	for _, dir := range dirs {
		for _, name := range unknownFiles {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return errors.Join(errs...)
}

// unknownFiles are names that no agent gives to a file.
var unknownFiles = []string{"unknown.json", ".json", "two\nlines.json", "not-json"}

// invalid is no value of any topic.
var invalid = []string{
	"", "{", "null}", `"text"`, "[]", `{"RequestedBy":`, "\x00\xff", strings.Repeat("[", 20000), `{"RequestedBy":1e400}`, `{"Status":{"a":[1]}}`,
}

// hostile serves the sockets of agents that are away: it says nothing that an
// agent could say, and never that it has said all.
func hostile(ctx context.Context, root string, rng *rand.Rand) error {
	dirs, err := topicDirs(root)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, 500*time.Millisecond+soon(rng, 2*time.Second))
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for _, dir := range dirs {
		listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: dir + ".sock", Net: "unixpacket"})
		if err != nil {
			stop()
			return err
		}
		serving.Go(func() { <-ctx.Done(); listener.Close() })
		speaks := rand.New(rand.NewPCG(rng.Uint64(), 0))
		serving.Go(func() {
			for {
				conn, err := listener.AcceptUnix()
				if err != nil {
					return
				}
				speak(ctx, conn, filepath.Base(dir), speaks)
			}
		})
	}
	<-ctx.Done()
	return nil
}

// speak says some packets and hangs up, or does not.
func speak(ctx context.Context, conn *net.UnixConn, topic string, rng *rand.Rand) {
	defer conn.Close()
	b64 := base64.StdEncoding.EncodeToString
	key := b64([]byte(types.Global))
	packets := []string{
		"hello", "hello " + topic, "hello " + topic + " maybe", "hello Other true", "update", "update " + topic, "update " + topic + " " + key,
		"update " + topic + " " + key + " " + b64([]byte(invalid[rng.IntN(len(invalid))])), "update " + topic + " !!! ???",
		"update " + topic + " " + b64([]byte("../../../etc/passwd")) + " " + b64([]byte("{")), "delete", "restarted " + topic + " many", "complete Other",
		strings.Repeat("x", 60000), "\x00", "update  " + topic,
	}
	if rng.IntN(2) == 0 {
		_, _ = conn.Write([]byte("hello " + topic + " false"))
	}
	for range rng.IntN(8) {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write([]byte(packets[rng.IntN(len(packets))])); err != nil {
			return
		}
	}
	if rng.IntN(3) == 0 {
		<-ctx.Done() // and silence
	}
}
