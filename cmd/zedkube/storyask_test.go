package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/util/jsonpath"

	"github.com/zedkube/zedkube/test/player"
)

// get asks a status server from an address of this machine, "" for any, and
// keeps the answer.
func (s *story) get(from, ip, path, accept string) (int, string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
	defer cancel()
	target := "http://" + net.JoinHostPort(ip, strconv.Itoa(player.StatusPort)) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", accept)
	dialer := net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.answers = append(s.answers, string(body))
	return response.StatusCode, string(body), err
}

// explained is explains IP JSONPATH VALUE [UUID]: waits for what /status tells
// people, or those who want to join that cluster.
func explained(s *story, _ *testscript.TestScript, args []string) error {
	path := "/status"
	if len(args) > 3 {
		path += "?" + url.Values{"cluster": args[3:]}.Encode()
	}
	return eventually(func() string {
		_, body, err := s.get("", args[0], path, "application/json")
		if err != nil {
			return err.Error()
		}
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			return err.Error()
		}
		var out strings.Builder
		query := jsonpath.New(args[1]).AllowMissingKeys(true)
		if err := errors.Join(query.Parse(args[1]), query.Execute(&out, value)); err != nil {
			return err.Error()
		}
		return differs(args[1]+" of "+path+" of "+args[0], out.String(), args[2])
	})
}

// reportOf is report FROM IP PATH CODE [TEXT...]: waits until an address gets this answer
// from a status server, with these texts in it.
func reportOf(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		code, body, err := s.get(args[0], args[1], args[2], "*/*")
		if err != nil {
			return err.Error()
		}
		if strconv.Itoa(code) != args[3] {
			return fmt.Sprintf("%s of %s answers %s with %d %s", args[2], args[1], args[0], code, body)
		}
		for _, text := range args[4:] {
			if !strings.Contains(body, text) {
				return fmt.Sprintf("%s is not in %s", text, body)
			}
		}
		return ""
	})
}

// installLog is where the kube container tells of k3s.
const installLog = "persist/kubelog/k3s-install.log"

// leak NODE: the kube container writes the cluster's token into its log.
func leak(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	path := filepath.Join(m.Root, installLog)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("k3s joins with "+s.fleet.Token()+" now\n"), 0o600)
}

// unleaked: nobody was answered with the cluster's token, and no device has it in
// a file but where it belongs.
func unleaked(s *story, _ *testscript.TestScript, _ []string) error {
	if len(s.answers) == 0 {
		return errors.New("nobody has been asked")
	}
	for _, body := range s.answers {
		if s.leaks(body) {
			return fmt.Errorf("the token is in an answer: %s", body)
		}
	}
	for _, m := range s.fleet.Members {
		if err := s.unleakedBy(m); err != nil {
			return err
		}
	}
	return nil
}

// leaks reports that the cluster's token can be read in a text.
func (s *story) leaks(text string) bool {
	token := s.fleet.Token()
	return strings.Contains(text, token) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(token)))
}

// unleakedBy looks through all of a device's files, its agent's log included.
func (s *story) unleakedBy(m *player.Member) error {
	found := false
	err := filepath.WalkDir(m.Root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		content, failed := os.ReadFile(path)
		if errors.Is(failed, fs.ErrNotExist) || failed == nil && !s.leaks(string(content)) {
			return nil
		}
		info, unseen := os.Stat(path)
		if err := errors.Join(err, failed, unseen); err != nil {
			return err
		}
		switch rel, _ := filepath.Rel(m.Root, path); {
		case rel == installLog: // leak has put it there
		case filepath.Dir(rel) == "run/zedkube/EdgeNodeClusterStatus" && info.Mode() == 0o600:
			found = true
		default:
			return fmt.Errorf("the token is in %s, mode %s", path, info.Mode())
		}
		return nil
	})
	if err == nil && !found {
		return fmt.Errorf("%s has no token", m.Name)
	}
	return err
}
