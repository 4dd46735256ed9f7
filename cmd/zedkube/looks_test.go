package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/zedkube/zedkube/test/player"
)

// eventually waits for missing to return "".
func eventually(missing func() string) error { return within(patience, missing) }

func within(limit time.Duration, missing func() string) error {
	deadline := time.Now().Add(limit)
	for {
		m := missing()
		if m == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %s", limit, m)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *story) member(name string) (*player.Member, int, error) {
	for i, m := range s.fleet.Members {
		if m.Name == name {
			return m, i, nil
		}
	}
	return nil, 0, fmt.Errorf("no node %q", name)
}

// read returns the value at a JSONPath in a published file, as text.
func (s *story) read(node, topic, path string) (string, error) {
	m, _, err := s.member(node)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(topic, "persist/") {
		topic = "run/" + topic
	}
	content, err := os.ReadFile(filepath.Join(m.Root, topic+".json"))
	if err != nil {
		return "", err
	}
	var value any
	if err := json.Unmarshal(content, &value); err != nil {
		return "", err
	}
	query := jsonpath.New(path).AllowMissingKeys(true)
	if err := query.Parse(path); err != nil {
		return "", err
	}
	var out strings.Builder
	err = query.Execute(&out, value)
	return out.String(), err
}

// expect NODE TOPIC/KEY PATH VALUE: waits for a value in a published file, or in
// one that begins with persist/; ~VALUE is a regular expression.
func expect(s *story, _ *testscript.TestScript, args []string) error {
	node, topic, path, want := args[0], args[1], args[2], args[3]
	return eventually(func() string {
		got, err := s.read(node, topic, path)
		if err != nil {
			return err.Error()
		}
		return differs(strings.Join(args[:3], " "), got, want)
	})
}

// absent NODE TOPIC/KEY: waits until a value is not published.
func absent(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return eventually(func() string {
		if _, err := os.Stat(filepath.Join(m.Root, "run", args[1]+".json")); !os.IsNotExist(err) {
			return args[1] + " is published"
		}
		return ""
	})
}

// never NODE STATUS...: no subscriber has seen these drain states, by number.
func never(s *story, _ *testscript.TestScript, args []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.drains[args[0]] {
		for _, status := range args[1:] {
			if strconv.Itoa(int(seen.Status)) == status {
				return fmt.Errorf("%s was in state %s: %v", args[0], status, s.drains[args[0]])
			}
		}
	}
	return nil
}

// answers NODE TEXT: waits until /status of the node's cluster address has
// this body.
func answers(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return eventually(func() string {
		got, err := player.Ask(s.ctx, m.IP)
		if err != nil {
			return err.Error()
		}
		if got != args[1] {
			return fmt.Sprintf("/status answers %q", got)
		}
		return ""
	})
}

// cordoned NODE true|false: waits for the Node's spec.unschedulable.
func cordoned(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		n, err := s.fleet.Cluster.Client().CoreV1().Nodes().Get(s.ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if strconv.FormatBool(n.Spec.Unschedulable) != args[1] {
			return fmt.Sprintf("%s: unschedulable is %v", args[0], n.Spec.Unschedulable)
		}
		return ""
	})
}
