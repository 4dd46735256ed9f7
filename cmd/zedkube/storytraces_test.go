package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/devcluster"
)

var random = regexp.MustCompile(`-[0-9a-f]{5}-0.*$`) // of the objects of an application

// tracesAre is traces NODE FILE: waits until what zedkube has below /persist of the device, and what objects of
// the cluster still name it, is as in the script's file. Its # lines are comments.
func tracesAre(s *story, ts *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	want := slices.DeleteFunc(strings.Split(strings.TrimSpace(ts.ReadFile(args[1])), "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
	return eventually(func() string {
		got, err := s.named(args[0])
		if err != nil {
			return err.Error()
		}
		files, err := left(m.Root)
		if err != nil {
			return err.Error()
		}
		got = append(got, files...)
		slices.Sort(got)
		slices.Sort(want)
		return cmp.Diff(want, got)
	})
}

// named are the objects of the cluster that name a node, but for Events.
func (s *story) named(node string) (names []string, err error) {
	kinds, err := s.fleet.Cluster.Kubectl(s.ctx, "api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(strings.Fields(string(kinds)), func(kind string) bool {
		return strings.HasPrefix(kind, "events") || strings.HasPrefix(kind, "componentstatuses")
	})
	out, err := s.fleet.Cluster.Kubectl(s.ctx, "get", strings.Join(list, ","), "-A", "-o", "json")
	if err != nil {
		return nil, err
	}
	var found struct{ Items []json.RawMessage }
	if err := json.Unmarshal(out, &found); err != nil {
		return nil, err
	}
	for _, raw := range found.Items {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, err
		}
		longhorns := o.Kind == "Node" && o.Metadata.Namespace == devcluster.LonghornNamespace // of another story: Longhorn is not played here
		if strings.Contains(string(raw), node) && !longhorns {
			names = append(names, fmt.Sprintf("%s %s/%s", o.Kind, o.Metadata.Namespace, random.ReplaceAllString(o.Metadata.Name, "")))
		}
	}
	return names, nil
}

// left are the files below /persist that zedkube has written, and its topics there.
func left(root string) (files []string, err error) {
	dirs := map[string]bool{ // to whether they hold topics
		"run/zedkube": true, "run/zedkube-cli": true, "persist/status/zedkube": true,
		"run/eve-bridge": false, "persist/zedkube": false, "persist/vault": false, "persist/kubelog": false, "persist/kube-status": false,
	}
	for dir, topics := range dirs {
		err = filepath.WalkDir(filepath.Join(root, dir), func(name string, e fs.DirEntry, err error) error {
			switch rest := strings.TrimPrefix(name, filepath.Join(root, dir)+"/"); {
			case errors.Is(err, fs.ErrNotExist), err == nil && (e.IsDir() || e.Type() == fs.ModeSocket):
				return nil
			case err == nil && topics:
				topic, _, _ := strings.Cut(rest, ".")
				files = append(files, "topic "+path.Base(dir)+"/"+topic)
			case err == nil:
				files = append(files, "file /"+dir+"/"+rest)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
